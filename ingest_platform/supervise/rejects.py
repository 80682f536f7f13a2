"""When the quarantine table is reported: once an hour at most, with all that it got meanwhile.

One bad record in each batch must not double a table's events.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ingest_platform.model.times import parse_time

_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class Rejects:
    """Records that were quarantined, of `records` read, since the report at `at` (ISO 8601)."""

    count: int = 0
    records: int = 0
    at: str = ""

    def more(self, count: int, records: int) -> Rejects:
        """After another report of the table."""
        return Rejects(self.count + count, self.records + records, self.at)

    def due(self, now: datetime) -> bool:
        """Whether to report; a clock that was set back is no reason to wait."""
        last = parse_time(self.at)
        return self.count > 0 and (last is None or not timedelta(0) <= now - last < _EVERY)

    def reported(self, now: datetime) -> Rejects:
        """After that."""
        return Rejects(at=now.isoformat())
