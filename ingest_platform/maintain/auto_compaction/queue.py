"""Which table is compacted next: bounded, and one table never waits twice. Pure; the caller locks.

A submission says only that a table has changed. The worker looks at the table when its turn comes,
so a second submission while the first still waits would find nothing new: they are one.
"""

from __future__ import annotations

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

    def submit(self, table: str) -> Submission:
        """Ask for `table` to be looked at."""
        if table in self._waiting:
            return Submission.COALESCED
        if len(self._waiting) >= self.capacity:
            return Submission.DROPPED
        self._waiting[table] = None
        return Submission.QUEUED

    def take(self) -> str | None:
        """The table that has waited longest and is not being worked on; None if there is none."""
        table = self._next()
        if table is not None:
            del self._waiting[table]
            self._running.add(table)
        return table

    def done(self, table: str) -> None:
        """The worker that took `table` is through with it."""
        self._running.discard(table)

    def withdraw(self, table: str) -> None:
        """Let `table` wait no more."""
        self._waiting.pop(table, None)

    @property
    def ready(self) -> bool:
        """Whether `take` would give a table."""
        return self._next() is not None

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

    def _next(self) -> str | None:
        return next((t for t in self._waiting if t not in self._running), None)
