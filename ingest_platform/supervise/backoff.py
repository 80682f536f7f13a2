"""How long to wait before the next launch, from how the last one went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from ingest_platform.model.launches import LaunchOutcome, LaunchRecord
from ingest_platform.model.status import Status
from ingest_platform.model.times import parse_time
from ingest_platform.supervise.jitter import fraction


@dataclass(frozen=True)
class Backoff:
    """Exponential, with jitter and a cap.

    Attributes:
        first: Wait after one launch that did not last; doubled with each further one.
        cap: Longest wait, before jitter.
        jitter: A wait is longer by up to this part of it, so that streams that lost their broker
            at the same moment do not all come back at the same moment.
        settled: A driver that lived so long did not fail to start: the count begins anew.
    """

    first: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=5)
    jitter: float = 0.2
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

    def repeats(self, launches: Sequence[LaunchRecord], failures: int, cause: str) -> int:
        """How often in a row, of the `failures`, drivers ended by the same cause; the last counts.

        The cause of an end is noted on the launch that followed it.
        """
        if not failures:
            return 0
        chain = launches[-min(failures, len(launches)) :]
        same = takewhile(lambda r: r.attempt > 1 and r.cause == cause, reversed(chain))
        return 1 + sum(1 for _ in same)

    def next_launch(
        self, launches: Sequence[LaunchRecord], failures: int, stream: str = ""
    ) -> datetime | None:
        """The earliest time of the next launch; None when there is nothing to wait for."""
        if not failures:
            return None
        doublings = min(failures - 1, 32)  # beyond, the product overflows long after the cap
        last = launches[-1]
        wait = min(self.cap, self.first * 2**doublings)
        longer = 1 + self.jitter * fraction(stream, last.id)
        return (last.ended_at or last.requested_at) + wait * longer

    def _settled(self, status: Status | None) -> bool:
        started = parse_time(status.started_at) if status else None
        updated = parse_time(status.updated_at) if status else None
        return bool(started and updated and updated - started >= self.settled)
