"""How long to wait before the next launch, from how the last one went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ingest_platform.model.launches import LaunchOutcome, LaunchRecord
from ingest_platform.model.status import Status
from ingest_platform.model.times import parse_time


@dataclass(frozen=True)
class Backoff:
    """Exponential, with a cap.

    Attributes:
        first: Wait after one launch that did not last; doubled with each further one.
        cap: Longest wait.
        settled: A driver that lived so long did not fail to start: the count begins anew.
    """

    first: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=5)
    settled: timedelta = timedelta(seconds=60)

    def failures(self, launches: Sequence[LaunchRecord], status: Status | None) -> int:
        """Number of launches in a row, up to the newest, whose driver did not last.

        Args:
            launches: Oldest first.
            status: The dead driver's last document. How long it lived is the span between the
                document's own two times; when the next launch came would not tell, since that
                waits for backoff.
        """
        finished = [r for r in launches if r.outcome is not LaunchOutcome.PENDING]
        if not finished:
            return 0
        last = finished[-1]
        lasted = last.outcome is LaunchOutcome.HEALTHY and self._settled(status)
        return 0 if lasted else last.attempt

    def next_launch(self, launches: Sequence[LaunchRecord], failures: int) -> datetime | None:
        """The earliest time of the next launch; None when there is nothing to wait for."""
        if not failures:
            return None
        doublings = min(failures - 1, 32)  # beyond, the product overflows long after the cap
        last = launches[-1]
        return (last.ended_at or last.requested_at) + min(self.cap, self.first * 2**doublings)

    def _settled(self, status: Status | None) -> bool:
        started = parse_time(status.started_at) if status else None
        updated = parse_time(status.updated_at) if status else None
        return bool(started and updated and updated - started >= self.settled)
