"""The queue's promises, whatever order submissions and workers come in."""

from __future__ import annotations

import math

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
        self.now = 0.0
        self.waiting: list[str] = []
        self.running: list[str] = []
        self.resting: dict[str, float] = {}

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
        rested = [t for t in free if self.resting.get(t, 0.0) <= self.now]
        due = self.queue.due()
        assert (due is None) == (not free)
        assert (due is not None and due <= self.now) == bool(rested)
        taken = self.queue.take(self.now)
        assert taken == (rested[0] if rested else None)  # first come, first served
        if taken is not None:
            self.waiting.remove(taken)
            self.running.append(taken)

    @rule(table=TABLES, rest=st.sampled_from([0.0, 1.0, 5.0]))
    def done(self, table: str, rest: float) -> None:
        if table in self.running:
            self.queue.done(table, self.now + rest)
            self.running.remove(table)
            self.resting[table] = self.now + rest

    @rule(seconds=st.sampled_from([0.5, 3.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

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
            self.queue.done(table, self.now)
        came = []
        while (due := self.queue.due()) is not None:
            came.append(self.queue.take(max(due, self.now)))
        assert sorted(filter(None, came)) == sorted(self.waiting)


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_table_that_is_worked_on_may_wait_once_more() -> None:
    """A commit during its compaction must be looked at afterwards, and not by a second worker."""
    queue = CoalescingQueue(8)
    queue.submit("t")
    assert queue.take(0.0) == "t"
    assert [queue.submit("t"), queue.submit("t")] == [Submission.QUEUED, Submission.COALESCED]
    assert queue.take(0.0) is None
    queue.done("t", 0.0)
    assert queue.take(0.0) == "t"


def test_table_that_rests_keeps_no_other_from_its_turn() -> None:
    queue = CoalescingQueue(8)
    queue.submit("t")
    assert queue.take(0.0) == "t"
    queue.done("t", 10.0)
    assert [queue.submit("t"), queue.submit("u")] == [Submission.QUEUED, Submission.QUEUED]
    assert queue.due() == -math.inf
    assert queue.take(9.9) == "u"
    assert [queue.due(), queue.take(9.9), queue.take(10.0)] == [10.0, None, "t"]
