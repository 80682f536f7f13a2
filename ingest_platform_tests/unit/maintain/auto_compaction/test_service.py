"""The service, one step at a time in the test's thread; threads only where they are the subject."""

from __future__ import annotations

import threading
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_platform.maintain.auto_compaction.attempt import YieldedError
from ingest_platform.maintain.auto_compaction.fallback import FallbackPolicy
from ingest_platform.maintain.auto_compaction.outcome import Outcome, Result
from ingest_platform.maintain.auto_compaction.queue import Submission
from ingest_platform.maintain.auto_compaction.service import AutoCompactionService, Limits
from ingest_platform.model.status import AutoCompactionReport
from ingest_platform_tests.unit.maintain.auto_compaction.compacting import (
    DONE,
    ScriptedCompactor,
    ScriptedDml,
)

POLICY = FallbackPolicy(heal_after=100.0)
LIMITS = Limits()


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def service(
    compactor: ScriptedCompactor | None = None,
    dml: ScriptedDml | None = None,
    policy: FallbackPolicy = POLICY,
    limits: Limits = LIMITS,
    clock: Clock | None = None,
) -> AutoCompactionService:
    return AutoCompactionService(
        compactor or ScriptedCompactor(),
        dml or ScriptedDml(),
        policy=policy,
        limits=limits,
        clock=clock or Clock(),
    )


def test_commits_in_between_are_one_attempt_on_the_newest_snapshot() -> None:
    compactor = ScriptedCompactor()
    s = service(compactor)
    said = [s.committed("t") for _ in range(3)]
    assert said == [Submission.QUEUED, Submission.COALESCED, Submission.COALESCED]
    assert s.work_one() is not None
    assert s.work_one() is None
    assert compactor.looked == ["t"]


def test_after_a_compaction_its_table_rests_for_as_long() -> None:
    """In a table that is written without a pause, half of the time belongs to the writes alone."""
    clock = Clock()

    def run(group: str) -> Result:
        del group
        clock.now += 3.0
        return DONE

    s = service(ScriptedCompactor(run), clock=clock)
    s.committed("t")
    assert s.work_one() is not None
    s.committed("t")
    clock.now += 2.9
    assert s.work_one() is None
    s.committed("u")
    assert s.work_one() is not None  # the rest is that table's own
    assert s.work_one() is not None


def test_worker_comes_back_when_the_rest_is_over() -> None:
    """Nobody wakes it: the commit came while the table was resting."""
    took = threading.Event()

    def run(group: str) -> Result:
        del group
        time.sleep(0.3)
        took.set()
        return DONE

    s = AutoCompactionService(ScriptedCompactor(run), ScriptedDml(), limits=Limits(parallelism=1))
    s.start()
    s.committed("t")
    assert took.wait(10)
    s.committed("t")
    assert s.wait_until_idle(10)
    assert s.report("t").completed == 2
    assert s.close(10)


def test_full_queue_drops_and_counts() -> None:
    s = service(limits=Limits(capacity=2))
    said = [s.committed(table) for table in "abca"]
    assert said == [
        *(Submission.QUEUED, Submission.QUEUED),
        *(Submission.DROPPED, Submission.COALESCED),
    ]
    report = s.report("a")
    assert (report.submitted, report.coalesced, report.dropped, report.waiting) == (2, 1, 1, 2)


def test_yield_sends_that_table_to_inline_and_no_other() -> None:
    s = service(dml=ScriptedDml({"t"}))
    s.committed("t")
    s.work_one()
    assert (s.mode("t"), s.mode("other")) == ("inline", "async")
    assert s.committed("t") is None
    assert s.committed("other") is Submission.QUEUED
    report = s.report("t")
    assert (report.mode, report.fallbacks, report.yielded["at_dequeue"]) == ("inline", 1, 1)


def test_fallback_can_be_switched_off() -> None:
    s = service(dml=ScriptedDml({"t"}), policy=FallbackPolicy(enabled=False))
    for _ in range(3):
        s.committed("t")
        s.work_one()
    assert s.mode("t") == "async"
    assert (s.report("t").fallbacks, s.report("t").yielded["at_dequeue"]) == (0, 3)


def test_healed_table_is_asynchronous_again() -> None:
    dml, clock = ScriptedDml({"t"}), Clock()
    s = service(dml=dml, clock=clock)
    s.committed("t")
    s.work_one()
    clock.now, dml.tables = 100.0, set()
    assert s.mode("t") == "async"
    s.committed("t")
    assert s.work_one() is not None
    report = s.report("t")
    assert (report.completed, report.fallbacks, report.heals) == (1, 1, 1)


def test_relapse_waits_longer() -> None:
    clock = Clock()
    s = service(dml=ScriptedDml({"t"}), clock=clock)
    for now in (0.0, 100.0):
        clock.now = now
        s.committed("t")
        s.work_one()
    clock.now = 299.0
    assert s.mode("t") == "inline"
    clock.now = 300.0
    assert s.mode("t") == "async"


def test_attempt_that_waits_when_its_table_falls_back_is_withdrawn() -> None:
    """It would only yield again."""

    def run(group: str) -> Result:
        s.committed("t")
        raise YieldedError(Outcome.BEFORE_COMMIT)

    s = service(ScriptedCompactor(run))
    s.committed("t")
    s.work_one()
    assert s.work_one() is None
    assert s.report("t").submitted == 2


def test_failures_are_counted_and_do_not_end_the_service() -> None:
    def run(group: str) -> Result:
        raise OSError("no space left")

    s = service(ScriptedCompactor(run))
    for _ in range(2):
        s.committed("t")
        s.work_one()
    report = s.report("t")
    assert (report.errors, report.last_error, report.mode) == (2, "OSError: no space left", "async")


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", "work", "dml", "quiet", "later"]), max_size=60),
    st.booleans(),
)
def test_every_commit_is_accounted_for(steps: list[str], enabled: bool) -> None:
    """Whatever happens, each submission that was accepted ends in exactly one outcome."""
    dml, clock = ScriptedDml(), Clock()
    policy = FallbackPolicy(enabled=enabled, heal_after=100.0)
    s = service(dml=dml, clock=clock, policy=policy, limits=Limits(capacity=2))
    attempts = 0
    for step in steps:
        if step == "work":
            attempts += s.work_one() is not None
        elif step == "dml":
            dml.tables = {"a", "b", "c"}
        elif step == "quiet":
            dml.tables = set()
        elif step == "later":
            clock.now += 60.0
        else:
            s.committed(step)
    report = s.report("a")
    ended = report.completed + report.idle + report.errors + sum(report.yielded.values())
    assert ended == attempts
    assert report.submitted == attempts + report.waiting
    assert enabled or report.fallbacks == 0


def test_two_workers_and_never_two_on_one_table() -> None:
    at_once, most, lock = [], [], threading.Lock()
    both = threading.Barrier(2, timeout=10)

    def run(group: str) -> Result:
        with lock:
            at_once.append(group)
            most.append(len(at_once))
        both.wait()
        with lock:
            at_once.remove(group)
        return DONE

    s = service(ScriptedCompactor(run))
    s.start()
    for table in "abababab":
        s.committed(table)
    assert s.wait_until_idle(10)
    assert s.close(10)
    assert max(most) == 2
    assert s.report("a").completed % 2 == 0


def test_close_lets_a_quick_attempt_finish() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def run(group: str) -> Result:
        begun.set()
        may_end.wait(10)
        return DONE

    s = service(ScriptedCompactor(run))
    s.start()
    s.committed("t")
    assert begun.wait(10)
    threading.Timer(0.1, may_end.set).start()
    assert s.close(10)
    assert (s.report("t").completed, s.committed("t")) == (1, None)


def test_close_cancels_a_slow_attempt() -> None:
    cancelled, begun = threading.Event(), threading.Event()

    class Slow(ScriptedCompactor):
        def cancel(self, group: str) -> None:
            cancelled.set()

    def run(group: str) -> Result:
        begun.set()
        cancelled.wait(10)
        raise RuntimeError("job cancelled")

    s = service(Slow(run))
    s.start()
    s.committed("t")
    assert begun.wait(10)
    assert s.close(0.5)
    assert (s.report("t").cut_off, s.report("t").errors) == (1, 0)


def test_close_returns_in_time_whatever_hangs() -> None:
    may_end, begun = threading.Event(), threading.Event()

    def run(group: str) -> Result:
        begun.set()
        may_end.wait(20)
        return DONE

    s = service(ScriptedCompactor(run))
    s.start()
    s.committed("t")
    assert begun.wait(10)
    started = time.monotonic()
    assert not s.close(0.2)
    assert time.monotonic() - started < 5
    may_end.set()


def test_counts_are_told_after_each_attempt() -> None:
    told: list[AutoCompactionReport] = []
    s = AutoCompactionService(ScriptedCompactor(), ScriptedDml(), changed=told.append)
    s.committed("t")
    s.work_one()
    assert [(r.completed, r.running, r.waiting, r.files_removed) for r in told] == [(1, 0, 0, 8)]
