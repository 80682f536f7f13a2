"""One line of `ingest-platform status`: what is seen of a stream, put together without I/O."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ingest_platform.adapters.table_log import TableSize
from ingest_platform.maintain.housekeeping import Housekeeping
from ingest_platform.model.control import Control
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import (
    AutoCompactionReport,
    BatchReport,
    ErrorReport,
    RunsAt,
    Status,
)
from ingest_platform.model.times import parse_time
from ingest_platform.spec import FreshnessSpec, StreamSpec
from ingest_platform.supervise.seen import Seen
from ingest_platform.supervise.shown import shown

QUIET = timedelta(seconds=60)  # drivers write a heartbeat every 10 s at least

_ENDED = {StreamState.STOPPED, StreamState.BACKOFF, StreamState.FAILED}


@dataclass(frozen=True)
class Sighting:
    """All that was read about one stream.

    Attributes:
        status: The driver's last status document.
        control: What people want of the stream.
        alive: Whether the driver's process exists; None when it is not on this host.
        files: The table's files; None without a table, or when they could not be read.
        housekeeping: The last compaction and vacuum.
        trouble: Why something could not be read.
    """

    status: Status | None = None
    control: Control = field(default_factory=Control)
    alive: bool | None = None
    files: TableSize | None = None
    housekeeping: Housekeeping = field(default_factory=Housekeeping)
    trouble: str | None = None


@dataclass(frozen=True)
class Overview:
    """One stream, as `status` shows it; times are ISO 8601 UTC, None is unknown.

    Attributes:
        since: When the driver started, or when it was last heard of if there is none.
        heartbeat_age: Seconds since the last status document, by this machine's clock.
        lag_records: Offsets behind latest.
        lag_seconds: Age of the oldest record that is not in the table.
        freshness: `fresh`, `warn`, `fail` by the spec's limits, or `unknown`.
        rows_in: Records per second that arrive.
        rows_out: Records per second that were processed while the driver was at work.
        quarantine_ratio: Rejects among all records since the driver started.
    """

    name: str
    table: str
    state: StreamState
    reason: str
    since: str | None = None
    generation: int | None = None
    session: str | None = None
    runs_at: RunsAt | None = None
    heartbeat_age: float | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    freshness: str = "unknown"
    rows_in: float | None = None
    rows_out: float | None = None
    last_batch: BatchReport | None = None
    table_version: int | None = None
    files: int | None = None
    small_files: int | None = None
    table_bytes: int | None = None
    quarantine_ratio: float | None = None
    compacted_at: str | None = None
    auto_compaction: AutoCompactionReport | None = None
    vacuumed_at: str | None = None
    error: ErrorReport | None = None
    trouble: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of one stream in `ingest-platform status --json`."""
        return asdict(self)


def overview(spec: StreamSpec, seen: Sighting, now: datetime) -> Overview:
    """Put together what was seen of one stream."""
    status, files = seen.status, seen.files
    state, reason = _state(spec, seen, now)
    table = {
        "table_version": files.version if files else status.table_version if status else None,
        "files": files.files if files else None,
        "small_files": files.small if files else None,
        "table_bytes": files.bytes if files else None,
        "compacted_at": seen.housekeeping.compacted_at,
        "vacuumed_at": seen.housekeeping.vacuumed_at,
        "trouble": seen.trouble,
    }
    if status is None:
        return Overview(spec.name, spec.table.path, state, reason, **table)
    live = _lives(seen, now)
    lag = _lag_seconds(status, _age(status, now))
    return Overview(
        spec.name,
        spec.table.path,
        state,
        reason,
        since=(status.started_at if live else status.updated_at) or None,
        generation=status.generation,
        session=status.session,
        runs_at=status.runs_at,
        heartbeat_age=_age(status, now),
        lag_records=status.records_behind,
        lag_seconds=lag,
        freshness=_freshness(spec.freshness, lag),
        rows_in=status.input_rows_per_second if live else None,
        rows_out=status.processed_rows_per_second if live else None,
        last_batch=status.last_batch,
        quarantine_ratio=_quarantine_ratio(status),
        auto_compaction=status.auto_compaction,
        error=status.error,
        **table,
    )


def _state(spec: StreamSpec, seen: Sighting, now: datetime) -> tuple[StreamState, str]:
    """The supervisor's own view; what only it remembers (launches, trends) is not known here."""
    age = _age(seen.status, now) if seen.status else None
    view = shown(
        spec,
        Seen(
            now=now,
            status=seen.status,
            alive=seen.alive,
            control=seen.control,
            quiet=timedelta(seconds=age or 0.0),
        ),
    )
    return view.state, view.reason


def _lives(seen: Sighting, now: datetime) -> bool:
    """Whether a driver is at work: its process exists, or at least its heartbeat is recent."""
    if seen.status is None or seen.status.state in _ENDED or seen.alive is False:
        return False
    age = _age(seen.status, now)
    return age is not None and age < QUIET.total_seconds()


def _age(status: Status, now: datetime) -> float | None:
    updated = parse_time(status.updated_at)
    # A clock that runs ahead on the driver's host is no heartbeat from the future.
    return max(0.0, (now - updated).total_seconds()) if updated else None


def _lag_seconds(status: Status, age: float | None) -> float | None:
    """As the status said, older by its own age; None when the driver did not know it."""
    if status.oldest_unread_age is None:
        return None
    return status.oldest_unread_age + (age or 0.0)


def _freshness(limits: FreshnessSpec, lag: float | None) -> str:
    if lag is None:
        return "unknown"
    if lag >= limits.fail.total_seconds():
        return "fail"
    return "warn" if lag >= limits.warn.total_seconds() else "fresh"


def _quarantine_ratio(status: Status) -> float | None:
    rejected = status.totals.get("quarantined", 0)
    records = status.totals.get("rows", 0) + rejected
    return rejected / records if records else None
