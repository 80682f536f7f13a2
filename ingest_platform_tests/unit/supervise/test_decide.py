"""The supervisor's decision, case by case and over random histories."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.model.control import Control, Pause
from ingest_platform.model.decisions import Decision, GiveUp, Start, Stop, Wait
from ingest_platform.model.launches import LaunchOutcome, LaunchRecord
from ingest_platform.model.lease import Lease
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport
from ingest_platform.supervise.backoff import Backoff
from ingest_platform.supervise.decide import decide
from ingest_platform.supervise.seen import Seen
from ingest_platform_tests.factories import NOW, make_spec, make_status

SPEC = make_spec()
LEASE = Lease(1, "worker:17", NOW.isoformat())
FATAL = ErrorReport(kind="TopicMissingError", message="no topic", remedy="create it")
PASSING = ErrorReport(kind="KafkaUnreachableError", message="no broker", retryable=True)


def launch(ago: float, outcome: LaunchOutcome, took: float = 1, attempt: int = 1) -> LaunchRecord:
    """A launch requested `ago` seconds before now."""
    at = NOW - timedelta(seconds=ago)
    ended = None if outcome is LaunchOutcome.PENDING else at + timedelta(seconds=took)
    return LaunchRecord(f"run-{ago:g}", at, outcome, ended, attempt)


def decided(**seen) -> Decision:
    """The decision on what is seen."""
    return decide(SPEC, Seen(now=NOW, **seen))


def test_missing_driver_is_started():
    assert decided() == Start("never started", generation=1)


def test_dead_driver_is_replaced_by_the_next_generation():
    decision = decided(status=make_status(), alive=False, lease=LEASE)
    assert decision == Start(
        "generation 1 on worker is dead: process 17 is gone", generation=2, cause="died"
    )


def test_healthy_driver_is_left_alone():
    decision = decided(status=make_status(), alive=True, lease=LEASE)
    assert decision == Wait("healthy: generation 1 on worker, 0 rows/s, caught up")


def test_backlog_is_told():
    status = make_status(oldest_unread_age=9.0, behind={"clicks-0": 40, "clicks-1": 2})
    assert "42 records behind" in decided(status=status, alive=True, lease=LEASE).reason
    unknown = make_status(oldest_unread_age=None)
    assert "lag not known yet" in decided(status=unknown, alive=True, lease=LEASE).reason


@pytest.mark.parametrize("alive", [True, False, None])
def test_paused_stream_is_not_started(alive):
    pause = Control(pause=Pause("ada", "2026-01-31T11:00:00+00:00", "broker move"))
    decision = decided(status=make_status(), alive=alive, lease=LEASE, control=pause)
    assert isinstance(decision, Wait)
    assert "paused by ada since 2026-01-31T11:00:00+00:00 (broker move)" in decision.reason
    assert ("still there" in decision.reason) == (alive is True)


def test_launch_under_way_is_awaited():
    decision = decided(launches=(launch(30, LaunchOutcome.PENDING),))
    assert decision == Wait("launching: run run-30 was requested 30 s ago")


def test_driver_that_starts_is_awaited():
    status = make_status(state=StreamState.STARTING, reason="reading the checkpoint")
    decision = decided(status=status, alive=True, lease=LEASE)
    assert decision == Wait("starting: generation 1 on worker (reading the checkpoint)")


def test_lost_launch_does_not_block_the_stream_for_ever():
    decision = decided(launches=(launch(601, LaunchOutcome.PENDING),))
    assert isinstance(decision, Start)


def test_error_that_needs_a_person_is_not_retried_and_says_what_to_do():
    status = make_status(state=StreamState.FAILED, error=FATAL)
    decision = decided(status=status, alive=False, lease=LEASE)
    assert decision == GiveUp(
        "the driver ended with TopicMissingError: no topic",
        "create it; then run the job clicks_start",
    )


def test_error_before_the_lease_is_known_from_the_launch():
    """The driver that finds no topic never writes a status; the launch still knows why."""
    failed = replace(launch(99, LaunchOutcome.FAILED), error=FATAL, after=1)
    dead = {"status": make_status(), "alive": False, "launches": (failed,)}
    assert isinstance(decided(lease=LEASE, **dead), GiveUp)
    later = replace(LEASE, generation=2)
    assert isinstance(decided(lease=later, **dead), Start)
    assert isinstance(decided(lease=LEASE, **{**dead, "alive": True}), Wait)


def test_a_persons_launch_after_giving_up_is_awaited():
    status = make_status(state=StreamState.FAILED, error=FATAL)
    launches = (launch(5, LaunchOutcome.PENDING),)
    assert isinstance(decided(status=status, alive=False, launches=launches), Wait)


def test_retryable_error_is_retried():
    status = make_status(state=StreamState.FAILED, error=PASSING)
    decision = decided(status=status, alive=False, lease=LEASE)
    assert isinstance(decision, Start)
    assert "KafkaUnreachableError: no broker" in decision.reason


def test_old_error_of_a_killed_driver_is_no_reason_to_give_up():
    """A running driver may have got over an error; SIGKILL leaves its last document behind."""
    status = make_status(state=StreamState.RUNNING, error=FATAL)
    assert isinstance(decided(status=status, alive=False, lease=LEASE), Start)


def test_drained_driver_gets_a_successor():
    status = make_status(state=StreamState.STOPPED, reason="SIGTERM")
    decision = decided(status=status, alive=False, lease=LEASE)
    assert decision == Start(
        "generation 1 on worker stopped (SIGTERM)", generation=2, cause="stopped"
    )


def test_repair_keeps_drivers_out():
    repair = Lease(2, "laptop:99", NOW.isoformat(), "repair")
    decision = decided(status=make_status(), alive=False, lease=repair)
    assert decision == Wait("repair by laptop:99 holds the lease")


def test_take_over_by_a_newer_generation_is_awaited():
    newer = Lease(2, "other:3", NOW.isoformat())
    decision = decided(status=make_status(), alive=True, lease=newer)
    assert decision == Wait("generation 2 is taking over from generation 1 on worker")


def test_driver_of_another_host_lives_as_long_as_its_heart_beats():
    status = make_status()
    beating = decided(status=status, alive=None, lease=LEASE, quiet=timedelta(seconds=59))
    assert beating.reason.startswith("healthy")
    silent = decided(status=status, alive=None, lease=LEASE, quiet=timedelta(seconds=75))
    assert silent == Start(
        "generation 1 on worker has not been heard of for 75 s", generation=2, cause="died"
    )


def test_silent_driver_whose_process_lives_is_not_doubled():
    seen = {"status": make_status(), "alive": True, "lease": LEASE}
    late = decided(**seen, quiet=timedelta(seconds=90))
    assert late == Wait("no heartbeat for 90 s, but the process of generation 1 on worker lives")
    hung = decided(**seen, quiet=timedelta(minutes=3))
    assert hung == Stop(
        "hung: no heartbeat for 3 min, but the process of generation 1 on worker lives"
    )


def test_crash_loop_backs_off_and_says_until_when():
    launches = (launch(10, LaunchOutcome.HEALTHY, took=8, attempt=2),)
    decision = decided(status=make_status(), alive=False, lease=LEASE, launches=launches)
    assert isinstance(decision, Wait)
    assert decision.until is not None
    assert 2 <= (decision.until - NOW).total_seconds() <= 2.4  # 4 s since it died, with jitter
    assert decision.reason.startswith("backoff: generation 1 on worker is dead")
    assert decision.reason.endswith("launch 3 in a row in 2 s")


def test_driver_that_lasted_is_replaced_at_once_and_the_count_begins_anew():
    launches = (launch(62, LaunchOutcome.HEALTHY, attempt=9),)
    lived = make_status(updated_at=(NOW + timedelta(seconds=60)).isoformat())
    decision = decided(status=lived, alive=False, lease=LEASE, launches=launches)
    assert isinstance(decision, Start)
    assert decision.attempt == 1


def test_launch_that_failed_counts_whatever_the_driver_before_it_did():
    launches = (launch(70, LaunchOutcome.FAILED, attempt=4),)
    lived = make_status(updated_at=(NOW + timedelta(days=2)).isoformat())
    decision = decided(status=lived, alive=False, lease=LEASE, launches=launches)
    assert isinstance(decision, Start)
    assert decision.attempt == 5


def test_backoff_grows_to_its_cap():
    backoff, waits = Backoff(jitter=0), []
    for attempt in (1, 2, 3, 8, 9, 100, 5000):
        launches = [launch(10, LaunchOutcome.FAILED, took=10, attempt=attempt)]
        at = backoff.next_launch(launches, backoff.failures(launches, None))
        assert at is not None
        waits.append((at - NOW).total_seconds())
    assert waits == [2, 4, 8, 256, 300, 300, 300]


launches_strategy = st.lists(
    st.builds(
        launch,
        ago=st.floats(0, 100_000),
        outcome=st.sampled_from(LaunchOutcome),
        took=st.floats(0, 300),
        attempt=st.integers(1, 100),
    ),
    max_size=20,
).map(lambda records: tuple(sorted(records, key=lambda r: r.requested_at)))

status_strategy = st.none() | st.builds(
    make_status,
    generation=st.integers(1, 5),
    state=st.sampled_from(StreamState),
    error=st.sampled_from([None, FATAL, PASSING]),
    oldest_unread_age=st.none() | st.floats(0, 1e6),
)

seen_strategy = st.builds(
    Seen,
    now=st.just(NOW),
    status=status_strategy,
    alive=st.sampled_from([True, False, None]),
    lease=st.none() | st.builds(Lease, st.integers(1, 6), st.just("h:1"), st.just("")),
    control=st.sampled_from([Control(), Control(pause=Pause("ada", ""))]),
    launches=launches_strategy,
    quiet=st.timedeltas(timedelta(0), timedelta(days=2)),
)


@given(seen_strategy)
def test_every_decision_has_a_reason_and_none_doubles_a_driver(seen):
    decision = decide(SPEC, seen)
    assert decision.reason
    if isinstance(decision, Start):
        assert not (seen.status and seen.alive)
        assert seen.control.pause is None
        assert decision.generation > (seen.lease.generation if seen.lease else 0)
    if isinstance(decision, GiveUp):
        assert decision.remedy


@given(seen_strategy)
def test_waiting_ends_without_news(seen):
    """In a healthy world, a stream whose driver is dead is launched again: never stuck for good."""
    later = Seen(
        now=NOW + timedelta(hours=1),
        status=make_status(),
        alive=False,
        lease=seen.lease,
        launches=seen.launches,
        quiet=seen.quiet + timedelta(hours=1),
    )
    assert isinstance(decide(SPEC, later), Start)


@given(st.lists(st.floats(0, 59), min_size=10, max_size=30))
def test_crash_loop_is_no_storm(lives):
    """However soon drivers die, launches come at most as often as backoff allows: 12 an hour."""
    now, status, launches = NOW, None, ()
    for life in lives:
        seen = Seen(now=now, status=status, alive=False, lease=LEASE, launches=launches)
        decision = decide(SPEC, seen)
        if isinstance(decision, Wait):
            assert decision.until is not None
            now = decision.until
            decision = decide(SPEC, replace(seen, now=now))
        assert isinstance(decision, Start)
        record = LaunchRecord("r", now, LaunchOutcome.HEALTHY, now, decision.attempt)
        launches = (*launches[-19:], record)
        died = now + timedelta(seconds=life)
        status = make_status(started_at=now.isoformat(), updated_at=died.isoformat())
        now = died
    gaps = [b.requested_at - a.requested_at for a, b in pairwise(launches)]
    assert all(
        gap >= min(timedelta(minutes=5), 2 * 2**i * timedelta(seconds=1))
        for i, gap in enumerate(gaps)
    )
