"""What alerts may depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ingest_platform.model.alert import Alert, Severity
from ingest_platform.model.contact import Contact
from ingest_platform.model.status import Status
from ingest_platform.spec import StreamSpec


@dataclass(frozen=True)
class LagVerdict:
    """Freshness, as Dagster last judged it; `severity` is None for fresh."""

    severity: Severity | None
    since: datetime


@dataclass(frozen=True)
class CheckVerdict:
    """The last verdict of an asset check; `severity` is None for passed."""

    asset: str
    name: str
    severity: Severity | None
    since: datetime
    reason: str = ""


@dataclass(frozen=True)
class RunOutcome:
    """The last finished run of one job; `stream` is empty for one of no single stream."""

    job: str
    run_id: str
    failed: bool
    ended_at: datetime
    stream: str = ""
    message: str = ""


@dataclass(frozen=True)
class StreamFacts:
    """What is seen of one stream.

    Attributes:
        spec: The stream.
        kafka: Address of its brokers: streams with the same one share their fate.
        status: The driver's last status document.
        contact: The supervisor's last look at it.
        silent: How long the contact has not changed, by the watcher's own clock.
        storage_fault: Why the stream's documents cannot be read; then the above are not known.
        storage: Where they are: streams with the same root share their fate.
        lag: Freshness; None where Dagster has not judged yet.
        checks: The last verdicts.
    """

    spec: StreamSpec
    kafka: str = ""
    status: Status | None = None
    contact: Contact | None = None
    silent: timedelta = timedelta(0)
    storage_fault: str = ""
    storage: str = ""
    lag: LagVerdict | None = None
    checks: tuple[CheckVerdict, ...] = ()


@dataclass(frozen=True)
class Condition:
    """Something is wrong now; it is told when it has lasted for `patience`."""

    alert: Alert
    patience: timedelta = timedelta(0)


@dataclass(frozen=True)
class Findings:
    """What one look found.

    Attributes:
        present: What is wrong, by the alert's key.
        unjudged: Keys of which this look can say nothing: neither raised nor resolved by it.
        unseen: Streams whose documents could not be read.
        well_runs: Keys of jobs that have succeeded since.
    """

    present: dict[str, Condition] = field(default_factory=dict[str, Condition])
    unjudged: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()
    well_runs: frozenset[str] = frozenset()
