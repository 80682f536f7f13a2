"""What is wrong, and what is raised and resolved because of it; no instance, no store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.model.alert import AlertKind, Severity
from ingest_platform.model.contact import Contact, Watch
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform.supervise.alerting.conditions import find
from ingest_platform.supervise.alerting.facts import (
    CheckVerdict,
    Condition,
    Findings,
    LagVerdict,
    RunOutcome,
    StreamFacts,
)
from ingest_platform.supervise.alerting.lag import lag_alert
from ingest_platform.supervise.alerting.settle import Watched, settle
from ingest_platform_tests.factories import NOW, make_alert, make_spec, make_status

SPEC = parse_alerts({}, {}, where="defs.yaml")
NO_BROKER = ErrorReport("KafkaUnreachableError", "no broker answered", at=NOW.isoformat())
LATE = LagVerdict(Severity.WARNING, NOW)
TOO_LATE = LagVerdict(Severity.CRITICAL, NOW)


def contact(**fields) -> Contact:
    made = Contact("clicks", NOW.isoformat(), StreamState.RUNNING, "healthy")
    return replace(made, **fields)


def facts(**fields) -> StreamFacts:
    known = {"kafka": "k:9092", "status": make_status(), "contact": contact(), "storage": "/lake"}
    return StreamFacts(**{"spec": make_spec(), **known, **fields})


def kinds(*streams: StreamFacts, runs: tuple[RunOutcome, ...] = ()) -> set[str]:
    return {c.alert.kind for c in find(streams, runs, SPEC, NOW).present.values()}


GAVE_UP = contact(state=StreamState.FAILED, reason="batch 7 is truncated", alert=True, remedy="x")
FAILING = contact(state=StreamState.BACKOFF, reason="failing: 3 times", alert=True)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({}, set()),
        ({"contact": None, "status": None}, set()),
        ({"contact": GAVE_UP}, {AlertKind.NEEDS_PERSON}),
        ({"contact": FAILING}, {AlertKind.FAILING}),
        ({"lag": LATE}, {AlertKind.LAG_WARNING}),
        ({"lag": TOO_LATE}, {AlertKind.LAG_FAILURE}),
        ({"lag": LATE, "contact": GAVE_UP}, {AlertKind.NEEDS_PERSON}),
        ({"lag": TOO_LATE, "contact": GAVE_UP}, {AlertKind.NEEDS_PERSON, AlertKind.LAG_FAILURE}),
        ({"silent": timedelta(minutes=5)}, {AlertKind.SUPERVISOR_SILENT}),
        ({"silent": timedelta(minutes=4)}, set()),
        ({"status": make_status(error=NO_BROKER)}, {AlertKind.KAFKA_UNREACHABLE}),
        (
            {"status": make_status(error=NO_BROKER), "contact": FAILING, "lag": LATE},
            {AlertKind.KAFKA_UNREACHABLE},
        ),
        (
            {"status": make_status(error=NO_BROKER), "lag": TOO_LATE},
            {AlertKind.KAFKA_UNREACHABLE, AlertKind.LAG_FAILURE},
        ),
        ({"storage_fault": "S3 did not answer"}, {AlertKind.STORAGE_UNREACHABLE}),
    ],
)
def test_one_trouble_is_one_alert(seen, expected):
    assert kinds(facts(**seen)) == expected


def test_paused_stream_does_not_blame_the_broker_that_ended_its_driver():
    paused = contact(state=StreamState.STOPPED, reason="paused by ann")
    assert kinds(facts(status=make_status(error=NO_BROKER), contact=paused)) == set()


def test_driver_that_never_wrote_a_status_is_known_by_the_supervisor():
    launch = contact(state=StreamState.BACKOFF, error=NO_BROKER.kind, message=NO_BROKER.message)
    assert kinds(facts(status=None, contact=launch)) == {AlertKind.KAFKA_UNREACHABLE}


def test_each_cluster_and_each_storage_has_its_own_alert():
    streams = [
        facts(spec=make_spec(name=f"s{n}"), kafka=f"k{n % 2}:9092",
              status=make_status(error=NO_BROKER))
        for n in range(8)
    ]  # fmt: skip
    alerts = [c.alert for c in find(streams, (), SPEC, NOW).present.values()]
    assert [(a.subject, a.numbers["streams"]) for a in alerts] == [
        ("k0:9092", "s0, s2, s4, s6"),
        ("k1:9092", "s1, s3, s5, s7"),
    ]


def test_checks_that_tell_the_same_as_other_alerts_are_left_out():
    checks = tuple(
        CheckVerdict("clicks", name, Severity.ERROR, NOW, "why")
        for name in ("lag", "driver_alive", "quarantine_ratio")
    )
    found = find([facts(checks=checks)], (), SPEC, NOW).present
    assert sorted(found) == ["clicks/check_failed.clicks-quarantine_ratio-" + _digest(found),
                             "clicks/lag_failure"]  # fmt: skip


def _digest(found) -> str:
    return next(key for key in found if "check_failed" in key).rpartition("-")[2]


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        ({"contact": contact(state=StreamState.STOPPED, reason="paused by ann")}, "paused by ann"),
        ({"status": None, "contact": None}, "no driver has reported yet"),
        ({"status": make_status(error=NO_BROKER)}, "no broker answered"),
        (
            {"status": make_status(input_rows_per_second=90.0, processed_rows_per_second=80.0)},
            "more records arrive than are processed",
        ),
        (
            {"status": make_status(behind={"clicks-0": 600}, input_rows_per_second=10.0,
                                   processed_rows_per_second=20.0)},
            "some 60 s left",
        ),
    ],
)  # fmt: skip
def test_lag_names_its_likely_cause(seen, cause):
    alert = lag_alert(facts(lag=TOO_LATE, **seen))
    assert alert
    assert cause in alert.cause


def test_lag_of_a_paused_stream_is_mended_by_resuming_it():
    paused = contact(state=StreamState.STOPPED, reason="paused by ann")
    alert = lag_alert(facts(lag=LATE, contact=paused))
    assert alert
    assert alert.command == "ingest-platform stream resume clicks"


# --- settle ---


def present(*alerts, patience: float = 0) -> Findings:
    return Findings({a.key: Condition(a, timedelta(seconds=patience)) for a in alerts})


class Settler:
    """Looks every 30 s, with what is open in the outbox."""

    def __init__(self) -> None:
        self.now, self.watched, self.open = NOW, Watched(), set()
        self.events: list[tuple[str, str]] = []

    def look(self, found: Findings) -> None:
        self.now += timedelta(seconds=30)
        change = settle(
            found,
            self.open,
            ["clicks"],
            self.watched,
            resolve_after=timedelta(minutes=2),
            now=self.now,
        )
        self.open |= {alert.key for alert in change.raised}
        self.open -= set(change.resolved)
        self.events += [("raised", alert.key) for alert in change.raised]
        self.events += [("resolved", key) for key in change.resolved]
        kept = replace(self.watched, since=change.since, well=change.well)
        self.watched = Watched.from_cursor(kept.to_cursor())


def test_alert_is_resolved_only_when_all_was_well_for_long_enough():
    settler, key = Settler(), make_alert().key
    settler.look(present(make_alert()))
    for _ in range(3):
        settler.look(Findings())
        settler.look(Findings())
        settler.look(present(make_alert()))
    assert settler.events == [("raised", key)]
    for _ in range(6):
        settler.look(Findings())
    assert settler.events == [("raised", key), ("resolved", key)]
    assert settler.watched.since == {}


def test_patience_counts_from_the_first_time_of_a_trouble_that_comes_and_goes():
    """A driver that starts and fails in turn shows the broker's absence every other time."""
    settler, alert = Settler(), make_alert()
    for _ in range(2):
        settler.look(present(alert, patience=90))
        settler.look(Findings())
    assert settler.events == []
    settler.look(present(alert, patience=90))
    assert settler.events == [("raised", alert.key)]


def test_storage_that_is_away_resolves_nothing_that_it_would_tell():
    settler = Settler()
    lag = make_alert(kind=AlertKind.LAG_FAILURE)
    settler.look(present(make_alert(), lag))
    for _ in range(8):
        settler.look(Findings(unseen=frozenset({"clicks"})))
    assert settler.open == {make_alert().key}, "freshness is Dagster's to tell"


def test_alerts_of_other_deployments_are_left_alone():
    settler = Settler()
    settler.open = {"orders/needs_person"}
    for _ in range(8):
        settler.look(Findings())
    assert settler.open == {"orders/needs_person"}


def test_failed_run_ends_with_a_later_one_that_succeeds_and_not_by_time():
    failed = RunOutcome("clicks_compact", "r1", failed=True, ended_at=NOW, stream="clicks")
    settler = Settler()
    settler.look(find([facts()], [failed], SPEC, NOW))
    for _ in range(20):
        settler.look(find([facts()], [], SPEC, NOW))
    assert settler.open == {"clicks/run_failed.clicks_compact"}
    settler.look(find([facts()], [replace(failed, failed=False)], SPEC, NOW))
    assert settler.open == set()


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=60))
def test_events_of_a_key_alternate_whatever_happens(history):
    """(trouble, lost cursor, unseen) of each look: never raised twice, never resolved unraised."""
    settler, alert = Settler(), make_alert()
    for trouble, lost, unseen in history:
        if lost:
            settler.watched = Watched()
        found = present(alert, patience=30) if trouble else Findings()
        settler.look(replace(found, unseen=frozenset({"clicks"} if unseen else ())))
    words = [event for event, _ in settler.events]
    assert words == ["raised", "resolved"] * (len(words) // 2) + ["raised"] * (len(words) % 2)


@given(st.lists(st.tuples(st.integers(1, 600), st.booleans()), max_size=60))
def test_watch_never_counts_time_in_which_it_did_not_look(history):
    watch, now, watched_for, mark = Watch().look("0", NOW), NOW, 0, 0
    for seconds, moved in history:
        now += timedelta(seconds=seconds)
        mark += moved
        watch = watch.look(str(mark), now)
        watched_for = 0 if moved or seconds > 180 else watched_for + seconds
        assert watch.quiet(now) == timedelta(seconds=watched_for)


def test_cursor_of_another_version_is_a_fresh_start():
    assert Watched.from_cursor('{"since": 3}') == Watched()
    assert Watched.from_cursor(None) == Watched()
