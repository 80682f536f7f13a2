"""Which table is compacted next: bounded, and one table never waits twice. Pure; the caller locks.

A submission says only that a table has changed. The worker looks at the table when its turn comes,
so a second submission while the first still waits would find nothing new: they are one.

After its turn a table may have to rest: what comes meanwhile waits, and is one attempt again.
Times are seconds of whatever clock the caller uses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Submission(StrEnum):
    """What became of a submission."""

    QUEUED = "submitted"
    COALESCED = "coalesced"  # the table waits already, and will be looked at afresh
    DROPPED = "dropped"  # no room: the table's next commit submits it again


@dataclass
class CoalescingQueue:
    """Tables that wait, in order, and tables that are worked on.

    A table can be in both: changed again while it is being compacted. It is at most once in each,
    and no worker gets a table that another one is still working on.

    Attributes:
        capacity: Tables that may wait.
    """

    capacity: int
    _waiting: dict[str, None] = field(default_factory=dict[str, None])  # a set that keeps order
    _running: set[str] = field(default_factory=set[str])
    _resting: dict[str, float] = field(default_factory=dict[str, float])  # until when

    def submit(self, table: str) -> Submission:
        """Ask for `table` to be looked at."""
        if table in self._waiting:
            return Submission.COALESCED
        if len(self._waiting) >= self.capacity:
            return Submission.DROPPED
        self._waiting[table] = None
        return Submission.QUEUED

    def take(self, now: float) -> str | None:
        """The table that has waited longest, is not being worked on and does not rest, if any."""
        table = next((t for t in self._free() if self._rests_until(t) <= now), None)
        if table is not None:
            del self._waiting[table]
            self._resting.pop(table, None)
            self._running.add(table)
        return table

    def done(self, table: str, rest_until: float) -> None:
        """The worker that took `table` is through with it; nobody takes it before `rest_until`."""
        self._running.discard(table)
        self._resting[table] = rest_until

    def withdraw(self, table: str) -> None:
        """Let `table` wait no more."""
        self._waiting.pop(table, None)

    def due(self) -> float | None:
        """From when on `take` gives a table, as things are; None if it gives none at any time."""
        return min(map(self._rests_until, self._free()), default=None)

    def clear(self) -> int:
        """Let nobody wait any more; returns how many did."""
        waiting = len(self._waiting)
        self._waiting.clear()
        return waiting

    @property
    def waiting(self) -> int:
        """Number of tables that wait."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Number of tables that are worked on."""
        return len(self._running)

    def _free(self) -> Iterator[str]:
        return (table for table in self._waiting if table not in self._running)

    def _rests_until(self, table: str) -> float:
        return self._resting.get(table, -math.inf)
