"""From what is seen of the streams to what is wrong: one alert for one trouble.

Trouble that another one explains is left out: with the brokers away, neither the drivers that fail
nor the lag that begins to grow is news. A failed freshness limit always is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from ingest_platform.model.alert import Alert, AlertKind, Severity
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport
from ingest_platform.spec.alerts import AlertsSpec
from ingest_platform.supervise.alerting.facts import (
    CheckVerdict,
    Condition,
    Findings,
    RunOutcome,
    StreamFacts,
)
from ingest_platform.supervise.alerting.lag import lag_alert
from ingest_platform.supervise.checks import DRIVER, LAG

_KAFKA, _STORAGE = "KafkaUnreachableError", "StorageUnavailableError"
# Told by other kinds, with more to say: the supervisor's own view, and freshness.
_TOLD_OTHERWISE = {DRIVER, LAG}
_SYMPTOMS = {AlertKind.FAILING, AlertKind.LAG_WARNING}


def find(
    streams: Sequence[StreamFacts],
    runs: Sequence[RunOutcome],
    spec: AlertsSpec,
    now: datetime,
) -> Findings:
    """What is wrong now.

    Args:
        streams: All streams of the deployment.
        runs: The last finished run of each job that finished one since the last look.
        spec: Limits.
        now: The watcher's time, for conditions that do not know when they began.
    """
    shared = [*_kafka_away(streams, spec, now), *_storage_away(streams, spec, now)]
    single = [c for facts in streams for c in _of_stream(facts, spec, now)]
    failed = [Condition(_run_alert(run)) for run in runs if run.failed]
    present = {c.alert.key: c for c in (*shared, *single, *failed)}
    hidden = _explained(streams, present)
    return Findings(
        present={key: c for key, c in present.items() if key not in hidden},
        unjudged=frozenset(hidden),
        unseen=frozenset(f.spec.name for f in streams if f.storage_fault),
        well_runs=frozenset(_run_alert(run).key for run in runs if not run.failed),
    )


def _of_stream(facts: StreamFacts, spec: AlertsSpec, now: datetime) -> Iterator[Condition]:
    yield from _supervision(facts, now)
    if facts.silent >= spec.supervisor_silent_after:
        yield Condition(silent_alert(facts.spec.name, facts.silent.total_seconds(), now))
    late = lag_alert(facts)
    if late:
        yield Condition(late)
    for check in facts.checks:
        if check.severity and check.name not in _TOLD_OTHERWISE:
            yield Condition(_check_alert(facts.spec.name, check))


def silent_alert(stream: str, seconds: float, now: datetime) -> Alert:
    """Nobody supervises the stream; also raised by its driver, under the same key."""
    return Alert(
        AlertKind.SUPERVISOR_SILENT,
        Severity.CRITICAL,
        stream,
        "the supervisor has gone silent: a driver that ends now is not replaced",
        now.isoformat(timespec="seconds"),
        "check that `dagster-daemon` runs, and the sensor's ticks in the UI (Automation, "
        f"{stream}_supervisor)",
        numbers={"silent for (s)": round(seconds)},
        cause="Dagster's daemon or code location is down, its database is locked, the sensor was "
        "switched off, or its ticks fail",
    )


def _supervision(facts: StreamFacts, now: datetime) -> Iterator[Condition]:
    contact, status, name = facts.contact, facts.status, facts.spec.name
    if contact is None or not (contact.alert or contact.remedy):
        return
    numbers: dict[str, str | int | float] = {"state": str(contact.state)}
    if status:
        numbers |= {"generation": status.generation, "records behind": status.records_behind}
    since = _error_at(facts) or contact.at or now.isoformat()
    kind, severity = AlertKind.FAILING, Severity.ERROR
    cause, command = _message(facts), f"ingest-platform status {name}"
    if contact.remedy or contact.state is StreamState.FAILED:
        kind, severity, cause = AlertKind.NEEDS_PERSON, Severity.CRITICAL, contact.reason
        command = contact.remedy or command
    what = "the stream needs a person" if kind is AlertKind.NEEDS_PERSON else contact.reason
    yield Condition(Alert(kind, severity, name, what, since, command, numbers=numbers, cause=cause))


def _kafka_away(
    streams: Sequence[StreamFacts], spec: AlertsSpec, now: datetime
) -> Iterator[Condition]:
    """One for each cluster, however many streams read it."""
    for servers, hit in _by(streams, _reports(_KAFKA), lambda f: f.kafka).items():
        since = min(_error_at(f) or now.isoformat(timespec="seconds") for f in hit)
        alert = Alert(
            AlertKind.KAFKA_UNREACHABLE,
            Severity.ERROR,
            "",
            f"Kafka at {servers} cannot be reached",
            since,
            f"ingest-platform check {hit[0].spec.name}",
            subject=servers,
            numbers=_affected(hit),
            cause=_message(hit[0]) or "brokers, network or login",
        )
        yield Condition(alert, spec.environment_after)


def _storage_away(
    streams: Sequence[StreamFacts], spec: AlertsSpec, now: datetime
) -> Iterator[Condition]:
    def away(facts: StreamFacts) -> bool:
        return bool(facts.storage_fault) or _reports(_STORAGE)(facts)

    for root, hit in _by(streams, away, lambda f: f.storage).items():
        alert = Alert(
            AlertKind.STORAGE_UNREACHABLE,
            Severity.ERROR,
            "",
            f"the storage at {root} cannot be used",
            min(_error_at(f) or now.isoformat(timespec="seconds") for f in hit),
            f"ingest-platform check {hit[0].spec.name}",
            subject=root,
            numbers=_affected(hit),
            cause=hit[0].storage_fault or _message(hit[0]),
        )
        yield Condition(alert, spec.environment_after)


def _check_alert(stream: str, check: CheckVerdict) -> Alert:
    return Alert(
        AlertKind.CHECK_FAILED,
        check.severity or Severity.ERROR,
        stream,
        f"the check {check.name} of {check.asset} failed",
        check.since.isoformat(timespec="seconds"),
        f"ingest-platform status {stream}",
        subject=f"{check.asset}.{check.name}",
        cause=check.reason,
    )


def _run_alert(run: RunOutcome) -> Alert:
    return Alert(
        AlertKind.RUN_FAILED,
        Severity.ERROR,
        run.stream,
        f"a run of the job {run.job} failed",
        run.ended_at.isoformat(timespec="seconds"),
        f"look at run {run.run_id} in the UI; then launch {run.job} again",
        subject=run.job,
        numbers={"run": run.run_id},
        cause=run.message,
    )


def _explained(streams: Sequence[StreamFacts], present: Mapping[str, Condition]) -> set[str]:
    """Keys that say nothing new beside another one."""
    hidden: set[str] = set()
    names = {f.spec.name: f for f in streams}
    kinds = {(c.alert.stream, c.alert.kind) for c in present.values()}
    roots = {c.alert.subject for c in present.values() if not c.alert.stream}
    for name, facts in names.items():
        explained: set[AlertKind] = set()
        if facts.storage in roots or (facts.kafka in roots and _reports(_KAFKA)(facts)):
            explained |= _SYMPTOMS
        if (name, AlertKind.NEEDS_PERSON) in kinds:
            explained |= {AlertKind.LAG_WARNING}
        if (name, AlertKind.LAG_FAILURE) in kinds:
            explained |= {AlertKind.LAG_WARNING}
        hidden |= {f"{name}/{kind}" for kind in explained}
    return hidden


def _reports(kind: str) -> Callable[[StreamFacts], bool]:
    """Whether the stream's trouble is of that kind; one that nobody wants to run has none."""

    def reports(facts: StreamFacts) -> bool:
        wanted = facts.contact is None or facts.contact.state is not StreamState.STOPPED
        trouble = _trouble(facts)
        return wanted and trouble is not None and trouble.kind == kind

    return reports


def _trouble(facts: StreamFacts) -> ErrorReport | None:
    """The driver's last error; the supervisor knows that of one that never wrote a status."""
    if facts.status and facts.status.error:
        return facts.status.error
    contact = facts.contact
    if contact is None or not contact.error:
        return None
    return ErrorReport(kind=contact.error, message=contact.message, at=contact.at)


def _by(
    streams: Sequence[StreamFacts],
    hit: Callable[[StreamFacts], bool],
    where: Callable[[StreamFacts], str],
) -> dict[str, list[StreamFacts]]:
    found: dict[str, list[StreamFacts]] = {}
    for facts in streams:
        if hit(facts):
            found.setdefault(where(facts), []).append(facts)
    return found


def _affected(hit: Sequence[StreamFacts]) -> dict[str, str | int | float]:
    names = sorted(f.spec.name for f in hit)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return {"streams": f"{', '.join(names[:5])}{more}"}


def _error_at(facts: StreamFacts) -> str:
    trouble = _trouble(facts)
    return trouble.at if trouble else ""


def _message(facts: StreamFacts) -> str:
    trouble = _trouble(facts)
    return trouble.message if trouble else ""
