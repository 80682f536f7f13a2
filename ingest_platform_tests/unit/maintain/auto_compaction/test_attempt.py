"""One attempt: the three places where it yields, and what is no yield."""

from __future__ import annotations

from ingest_platform.maintain.auto_compaction.attempt import Attempt, Why, YieldedError
from ingest_platform.maintain.auto_compaction.outcome import Outcome, Result
from ingest_platform_tests.unit.maintain.auto_compaction.compacting import (
    DONE,
    ScriptedCompactor,
    ScriptedDml,
)


class JobCancelledError(Exception):
    """As Spark's comes out of a cancelled job group."""


def attempt(compactor: ScriptedCompactor, dml: ScriptedDml) -> Attempt:
    return Attempt("t", "group-1", compactor, dml)


def test_undisturbed_it_completes() -> None:
    result = attempt(ScriptedCompactor(), ScriptedDml()).run()
    assert (result.outcome, result.removed, result.added) == (Outcome.COMPLETED, 8, 1)


def test_nothing_due_asks_no_further() -> None:
    """DML in flight is no reason to fall back when there is nothing to compact."""
    compactor = ScriptedCompactor(due=None)
    assert attempt(compactor, ScriptedDml({"t"})).run().outcome is Outcome.IDLE
    assert compactor.ran == []


def test_yields_at_dequeue() -> None:
    compactor = ScriptedCompactor()
    assert attempt(compactor, ScriptedDml({"t"})).run().outcome is Outcome.AT_DEQUEUE
    assert compactor.ran == []


def test_dml_that_begins_with_the_question_is_seen() -> None:
    """Between the watch and the first Spark job nothing may slip through."""
    compactor = ScriptedCompactor()

    class Begins(ScriptedDml):
        def in_flight(self, table: str) -> bool:
            self.begin(table)
            return False

    assert attempt(compactor, Begins()).run().outcome is Outcome.AT_DEQUEUE
    assert compactor.ran == []


def test_yields_mid_flight_by_cancelling_its_jobs() -> None:
    dml = ScriptedDml()

    def run(group: str) -> Result:
        dml.begin("t")
        raise JobCancelledError

    compactor = ScriptedCompactor(run)
    assert attempt(compactor, dml).run().outcome is Outcome.MID_FLIGHT
    assert compactor.cancelled == ["group-1"]


def test_yields_before_the_commit() -> None:
    def run(group: str) -> Result:
        raise YieldedError(Outcome.BEFORE_COMMIT)

    result = attempt(ScriptedCompactor(run), ScriptedDml()).run()
    assert result.outcome is Outcome.BEFORE_COMMIT
    assert result.outcome.yielded


def test_commit_that_was_made_counts_although_dml_began() -> None:
    dml = ScriptedDml()

    def run(group: str) -> Result:
        dml.begin("t")
        return DONE

    assert attempt(ScriptedCompactor(run), dml).run().outcome is Outcome.COMPLETED


def test_failure_is_an_error_and_does_not_get_out() -> None:
    def run(group: str) -> Result:
        raise JobCancelledError("disk full\nat some.Class")

    result = attempt(ScriptedCompactor(run), ScriptedDml()).run()
    assert (result.outcome, result.error) == (Outcome.ERROR, "JobCancelledError: disk full")
    assert not result.outcome.yielded


def test_shutdown_is_no_yield() -> None:
    """The end of a driver must not send the table to inline compaction."""
    stopped = attempt(ScriptedCompactor(), ScriptedDml())
    stopped.stop(Why.SHUTDOWN)
    assert stopped.run().outcome is Outcome.CUT_OFF


def test_stop_after_the_end_cancels_nothing() -> None:
    compactor = ScriptedCompactor()
    ended = attempt(compactor, ScriptedDml())
    ended.run()
    ended.stop(Why.DML)
    assert compactor.cancelled == []
