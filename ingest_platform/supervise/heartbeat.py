"""How long a status document has not changed, by the watcher's clock alone.

Comparing the document's own time with the watcher's would take a skewed clock for a dead driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ingest_platform.model.control import Control
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
        looks: How often it has seen the same one.
    """

    mark: str = ""
    seen_at: str = ""
    moving: bool = False
    looks: int = 0

    def look(self, status: Status | None, now: datetime) -> Heartbeat:
        """Take another look."""
        mark = f"{status.generation}/{status.updated_at}" if status else ""
        if mark == self.mark:
            return replace(self, looks=self.looks + 1)
        seen = replace(self, mark=mark, seen_at=now.isoformat(), looks=1)
        return replace(seen, moving=bool(self.mark and mark))

    def excused(self, now: datetime) -> Heartbeat:
        """After a look that failed: while the storage was away, the driver could not write."""
        return replace(self, seen_at=now.isoformat(), looks=0) if self.mark else self

    def quiet(self, now: datetime) -> timedelta:
        """Time since the watcher first saw the present document."""
        seen = parse_time(self.seen_at)
        return max(timedelta(0), now - seen) if seen else timedelta(0)


@dataclass(frozen=True)
class Standing:
    """Since when the driver's state, and what is wanted of it, have not changed."""

    mark: str = ""
    since: str = ""

    def look(self, status: Status | None, control: Control, now: datetime) -> Standing:
        """Take another look."""
        wanted = status and (control.pause is not None or control.drains(status.generation))
        mark = f"{status.generation}/{status.state}/{bool(wanted)}" if status else ""
        return self if mark == self.mark else Standing(mark, now.isoformat())

    def span(self, now: datetime) -> timedelta:
        """How long."""
        since = parse_time(self.since)
        return max(timedelta(0), now - since) if since else timedelta(0)
