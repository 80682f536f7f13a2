"""How long a status document has not changed, by the watcher's clock alone.

Comparing the document's own time with the watcher's would take a skewed clock for a dead driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ingest_platform.model.status import Status
from ingest_platform.model.times import parse_time


@dataclass(frozen=True)
class Heartbeat:
    """What the watcher remembers between two looks.

    Attributes:
        mark: Identifies the last document seen.
        seen_at: When the watcher first saw that one; ISO 8601.
        moving: Whether it has ever seen the document change: before that, the document may be
            years old.
    """

    mark: str = ""
    seen_at: str = ""
    moving: bool = False

    def look(self, status: Status | None, now: datetime) -> Heartbeat:
        """Take another look."""
        mark = f"{status.generation}/{status.updated_at}" if status else ""
        if mark == self.mark:
            return self
        seen = replace(self, mark=mark, seen_at=now.isoformat())
        return replace(seen, moving=bool(self.mark and mark))

    def quiet(self, now: datetime) -> timedelta:
        """Time since the watcher first saw the present document."""
        seen = parse_time(self.seen_at)
        return max(timedelta(0), now - seen) if seen else timedelta(0)
