"""When reports are due, and what they add up to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.model.offsets import OffsetRange, OffsetRanges
from ingest_platform.model.report import Quantiles
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport
from ingest_platform.supervise.heartbeat import Heartbeat
from ingest_platform.supervise.materialize import (
    Evidence,
    Reported,
    first_reported,
    lag_seconds,
    not_due,
    nothing_new,
    report,
)
from ingest_platform.supervise.memory import Memory
from ingest_platform_tests.factories import NOW, make_commit, make_spec, make_status

SPEC = make_spec(report_every="5 minutes", freshness={"warn": "15m", "fail": "1h"})
LONG_AGO = Reported(at=(NOW - timedelta(hours=1)).isoformat(), version=3)


def found(quiet: float = 0, *, moving: bool = True, **status) -> Evidence:
    """A live heartbeat, `quiet` seconds old."""
    return Evidence(make_status(**status), timedelta(seconds=quiet), moving=moving, now=NOW)


def test_report_is_due_after_the_period_and_not_before():
    for seconds, due in ((299, False), (300, True), (301, True)):
        last = Reported(at=(NOW - timedelta(seconds=seconds)).isoformat(), version=3)
        assert (not_due(SPEC, last, found()) is None) == due


def test_clock_that_was_set_back_does_not_silence_reports():
    future = Reported(at=(NOW + timedelta(hours=1)).isoformat(), version=3)
    assert not_due(SPEC, future, found()) is None


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (found(moving=False), "no heartbeat has been seen yet"),
        (Evidence(None, timedelta(0), moving=True, now=NOW), "no heartbeat has been seen yet"),
        (found(oldest_unread_age=None), "lag is not known"),
        (found(oldest_unread_age=901.0), "901 s behind, beyond the freshness warning"),
        (found(oldest_unread_age=600.0, quiet=400), "1000 s behind"),
    ],
)
def test_table_that_lags_or_may_lag_is_not_reported(evidence, reason):
    """Otherwise freshness would stay green while the table falls behind."""
    assert reason in (not_due(SPEC, LONG_AGO, evidence) or "")


def test_lag_is_estimated_from_backlog_and_rate_of_arrival():
    status = make_status(
        oldest_unread_age=None, behind={"clicks-0": 600}, input_rows_per_second=10.0
    )
    assert lag_seconds(status, timedelta(seconds=5)) == 65
    assert lag_seconds(replace(status, behind={}), timedelta(0)) is None


def test_quiet_topic_is_reported_when_verified():
    assert nothing_new(LONG_AGO, found(), 3) is None
    for doubtful in (
        found(oldest_unread_age=2.0),
        found(state=StreamState.DRAINING),
        found(quiet=60),
    ):
        assert "not known to be idle" in (nothing_new(LONG_AGO, doubtful, 3) or "")
        assert nothing_new(LONG_AGO, doubtful, 4) is None
    assert nothing_new(LONG_AGO, found(), None) == "there is no table yet"


def test_report_adds_up_the_batches_since_the_last():
    status = make_status(
        recent=tuple(BatchReport(id=v, table_version=v, seconds=float(v)) for v in (2, 3, 4, 5, 6)),
        behind={"clicks-0": 7},
        oldest_unread_age=1.5,
    )
    commits = [
        make_commit(4),
        make_commit(5, operation="OPTIMIZE", ledger=None, metrics={"numFiles": 50}),
        make_commit(6),
    ]
    evidence = replace(found(), status=status)
    made = report(LONG_AGO, evidence, commits, status)
    assert (made.from_version, made.table_version, made.batches, made.rows) == (3, 6, 2, 20)
    assert (made.files, made.bytes, made.seconds) == (4, 200, 3600)
    assert made.rows_per_second == 20 / 3600
    assert made.offsets == OffsetRanges((OffsetRange("clicks", 0, 40, 70),))
    assert made.batch_seconds == Quantiles(5.0, 6.0, 6.0)
    assert (made.lag_records, made.lag_seconds) == (7, 1.5)


def test_files_are_the_drivers_count_where_the_commit_does_not_tell():
    """Delta keeps numFiles of a WRITE, but not of a STREAMING UPDATE."""
    status = make_status(recent=(BatchReport(id=4, table_version=4, files=3),))
    streamed = make_commit(4, metrics={"numOutputBytes": 7})
    made = report(LONG_AGO, found(), [streamed], status)
    assert (made.files, made.bytes) == (3, 7)


def test_report_of_an_idle_period_is_all_zero():
    made = report(LONG_AGO, found(), [], make_status())
    assert (made.table_version, made.batches, made.rows, made.rows_per_second) == (3, 0, 0, 0)
    assert made.batch_seconds == Quantiles()


def test_first_report_begins_with_the_present_driver():
    """A new deployment on a table of three years must not report three years of rows."""
    commits = [make_commit(v) for v in range(6)]
    started_ms = int((NOW + timedelta(seconds=4)).timestamp() * 1000)
    assert first_reported(commits, started_ms) == Reported(version=3)
    assert first_reported([], started_ms) == Reported()


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_quantiles_are_samples_in_order(samples):
    q = Quantiles.of(samples)
    assert {q.p50, q.p95, q.max} <= set(samples)
    assert q.p50 <= q.p95 <= q.max == max(samples)
    assert sum(s <= q.p50 for s in samples) * 2 >= len(samples)


def test_heartbeat_is_watched_by_the_watchers_clock():
    """Fault 28: the driver's clock is an hour off, and its heart beats all the same."""
    skewed = make_status(updated_at=(NOW - timedelta(hours=1)).isoformat())
    first = Heartbeat().look(skewed, NOW)
    assert not first.moving
    assert first.quiet(NOW) == timedelta(0)
    later = NOW + timedelta(seconds=30)
    assert first.look(skewed, later).quiet(later) == timedelta(seconds=30)
    moved = first.look(replace(skewed, updated_at="next"), later)
    assert moved.moving
    assert moved.quiet(later) == timedelta(0)


def test_torn_document_between_two_whole_ones_stops_the_heart_only_so_long():
    beat = Heartbeat().look(make_status(), NOW).look(None, NOW)
    assert not beat.moving
    again = beat.look(make_status(updated_at="a"), NOW).look(make_status(updated_at="b"), NOW)
    assert again.moving


def test_memory_round_trip_and_damage():
    memory = Memory(Heartbeat("1/x", NOW.isoformat(), moving=True), LONG_AGO)
    assert Memory.from_cursor(memory.to_cursor()) == memory
    for text in (None, "", "{}", "[]", "12", '{"heartbeat": {"new": 1}, "reported": {}}'):
        assert Memory.from_cursor(text) == Memory()


def test_day_of_looks_stays_within_the_event_budget():
    """Dagster's event log has no retention: 288 events a day and table, however busy it is."""
    reported, events = Reported(), 0
    for second in range(0, 86_400, 15):
        now = NOW + timedelta(seconds=second)
        evidence = Evidence(make_status(), timedelta(0), moving=True, now=now)
        if not_due(SPEC, reported, evidence) or nothing_new(reported, evidence, second):
            continue
        events += 1
        reported = Reported(at=now.isoformat(), version=second)
    assert events == 288
