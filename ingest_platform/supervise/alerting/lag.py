"""Lag as an alert: how late the data is, and the likeliest of the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ingest_platform.model.alert import Alert, AlertKind, Severity
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import Status
from ingest_platform.supervise.alerting.facts import StreamFacts
from ingest_platform.supervise.checks import LAG
from ingest_platform.supervise.phrases import ago

_KEEPS_UP = 0.95  # input over output, below which a stream catches up


def lag_alert(facts: StreamFacts) -> Alert | None:
    """The alert, if the data is late: by freshness, or by the lag check, which is sooner."""
    verdicts = [(facts.lag.severity, facts.lag.since)] if facts.lag else []
    verdicts += [(c.severity, c.since) for c in facts.checks if c.name == LAG]
    late = [(severity, since) for severity, since in verdicts if severity]
    if not late:
        return None
    failed = any(severity is not Severity.WARNING for severity, _ in late)
    limits = facts.spec.freshness
    limit, word = (limits.fail, "failure") if failed else (limits.warn, "warning")
    return Alert(
        AlertKind.LAG_FAILURE if failed else AlertKind.LAG_WARNING,
        Severity.CRITICAL if failed else Severity.WARNING,
        facts.spec.name,
        f"the data is late: the {word} limit of {ago(limit)} has passed",
        min(since for _, since in late).isoformat(timespec="seconds"),
        _command(facts),
        numbers=dict(_numbers(facts.status)),
        cause=_cause(facts),
    )


def _numbers(status: Status | None) -> Iterator[tuple[str, str | int | float]]:
    if status is None:
        return
    if status.oldest_unread_age is not None:
        yield "lag (s)", round(status.oldest_unread_age)
    yield "records behind", status.records_behind
    yield "records in per second", round(status.input_rows_per_second)
    yield "records out per second", round(status.processed_rows_per_second)


def _cause(facts: StreamFacts) -> str:
    """The first that holds of: the environment, the driver, its error, its speed."""
    status, contact = facts.status, facts.contact
    if facts.storage_fault:
        return facts.storage_fault
    if contact and contact.state not in {StreamState.RUNNING, StreamState.STARTING}:
        return f"{contact.state}: {contact.reason}"
    if status is None or status.error:
        known = status.error if status else None
        return f"{known.kind}: {known.message}" if known else "no driver has reported yet"
    return _speed(status)


def _speed(status: Status) -> str:
    arriving, speed = status.input_rows_per_second, status.processed_rows_per_second
    if speed and arriving > _KEEPS_UP * speed:
        return "more records arrive than are processed: more cores, or a higher rate limit"
    if status.records_behind:
        return f"catching up with {status.records_behind} records, {_left(status)}"
    return "the last batches took long; the driver's log says why"


def _left(status: Status) -> str:
    gain = status.processed_rows_per_second - status.input_rows_per_second
    if gain <= 0:
        return "at an unknown speed"
    return f"some {ago(timedelta(seconds=status.records_behind / gain))} left"


def _command(facts: StreamFacts) -> str:
    name, contact = facts.spec.name, facts.contact
    if contact and contact.state is StreamState.STOPPED and contact.reason.startswith("paused"):
        return f"ingest-platform stream resume {name}"
    return f"ingest-platform status {name}"
