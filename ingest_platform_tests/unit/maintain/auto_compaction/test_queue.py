"""The queue's promises, whatever order submissions and workers come in."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ingest_platform.maintain.auto_compaction.queue import CoalescingQueue, Submission

CAPACITY = 3
TABLES = st.sampled_from(["a", "b", "c", "d", "e"])


class QueueMachine(RuleBasedStateMachine):
    """Compares the queue with a list that waits and a list that is worked on."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = CoalescingQueue(CAPACITY)
        self.waiting: list[str] = []
        self.running: list[str] = []

    @rule(table=TABLES)
    def submit(self, table: str) -> None:
        said = self.queue.submit(table)
        if table in self.waiting:
            assert said is Submission.COALESCED
        elif len(self.waiting) == CAPACITY:
            assert said is Submission.DROPPED
        else:
            assert said is Submission.QUEUED
            self.waiting.append(table)

    @rule()
    def take(self) -> None:
        free = [t for t in self.waiting if t not in self.running]
        assert self.queue.ready == bool(free)
        taken = self.queue.take()
        assert taken == (free[0] if free else None)  # first come, first served
        if taken is not None:
            self.waiting.remove(taken)
            self.running.append(taken)

    @rule(table=TABLES)
    def done(self, table: str) -> None:
        self.queue.done(table)
        self.running = [t for t in self.running if t != table]

    @rule(table=TABLES)
    def withdraw(self, table: str) -> None:
        self.queue.withdraw(table)
        self.waiting = [t for t in self.waiting if t != table]

    @rule()
    def clear(self) -> None:
        assert self.queue.clear() == len(self.waiting)
        self.waiting = []

    @invariant()
    def bounded_and_single(self) -> None:
        assert self.queue.waiting == len(self.waiting) == len(set(self.waiting)) <= CAPACITY
        assert self.queue.running == len(self.running) == len(set(self.running))

    def teardown(self) -> None:
        """No submission that was accepted is ever lost: all of them come out."""
        for table in list(self.running):
            self.queue.done(table)
        self.running = []
        came = []
        while (table := self.queue.take()) is not None:
            came.append(table)
        assert came == self.waiting


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_table_that_is_worked_on_may_wait_once_more() -> None:
    """A commit during its compaction must be looked at afterwards, and not by a second worker."""
    queue = CoalescingQueue(8)
    queue.submit("t")
    assert queue.take() == "t"
    assert [queue.submit("t"), queue.submit("t")] == [Submission.QUEUED, Submission.COALESCED]
    assert queue.take() is None
    queue.done("t")
    assert queue.take() == "t"
