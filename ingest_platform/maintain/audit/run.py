"""One audit, with its I/O: read the log, then scan the data and ask the brokers if wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from ingest_platform.adapters.delta_tables import options_for
from ingest_platform.errors import StorageUnavailableError, UserError
from ingest_platform.maintain.audit.coordinates import collect
from ingest_platform.maintain.audit.data_audit import RowCounts, audit_data
from ingest_platform.maintain.audit.held import Held
from ingest_platform.maintain.audit.log_audit import LogAudit
from ingest_platform.maintain.audit.log_folder import LogFolder, log_folder
from ingest_platform.maintain.audit.log_reader import (
    Listing,
    LogChangedError,
    list_log,
    read_commits,
)
from ingest_platform.maintain.audit.report import AuditReport
from ingest_platform.maintain.audit.topic_audit import BrokerRange, audit_topic
from ingest_platform.maintain.table_properties import DEFAULT_LOG_RETENTION, interval
from ingest_platform.spec.environment import StorageEnvironment

_TRIES = 3
_TOLD_EVERY = 250

OnProgress = Callable[[int, int], None]
Brokers = Callable[[], Mapping[tuple[str, int], BrokerRange]]


@dataclass(frozen=True)
class AuditTarget:
    """What to audit.

    Attributes:
        table: Path of the table.
        quarantine: Path of its quarantine.
        from_earliest: The stream began at its topics' first offsets.
    """

    table: str
    quarantine: str
    from_earliest: bool = False


@dataclass(frozen=True)
class Examined:
    """An audit's outcome, and the log that it was made from."""

    report: AuditReport
    log: LogAudit


def examine(
    target: AuditTarget,
    storage: StorageEnvironment,
    now: datetime,
    *,
    data: bool = False,
    brokers: Brokers | None = None,
    on_progress: OnProgress = lambda _done, _total: None,
) -> Examined:
    """Audit one table, and keep what was read.

    Args:
        target: What to audit.
        storage: How to reach S3.
        now: To tell an expired log entry from a deleted one.
        data: Also scan the coordinate columns of table and quarantine.
        brokers: Gives the topics' bounds; asked after the log was read, so lag is never negative.
        on_progress: Told commits read and commits in all, from time to time.

    Raises:
        UserError: There is no Delta table.
        StorageUnavailableError, StorageDeniedError: It cannot be read.
    """
    log = log_folder(target.table, storage)
    audit, listing = _read(log, target.table, on_progress)
    possible = None
    if listing.commits and listing.commits[0][0]:
        possible = _cleanup_possible(target.table, storage, now)
    report = audit.report(listing.extent(cleanup_possible=possible))
    if data:
        report = _with_data(report, audit, target, storage)
    if brokers is not None:
        report = audit_topic(report, brokers(), from_earliest=target.from_earliest)
    return Examined(report, audit)


def _read(log: LogFolder, table: str, on_progress: OnProgress) -> tuple[LogAudit, Listing]:
    for _ in range(_TRIES):
        listing = list_log(log)
        if not (listing.commits or listing.checkpoints or listing.checksums):
            raise UserError(
                "there is no Delta table",
                where=table,
                remedy="start the stream first, or mend the path in the spec",
            )
        audit = LogAudit()
        try:
            for done, commit in enumerate(read_commits(log, listing)):
                audit.add(commit)
                if done % _TOLD_EVERY == 0:
                    on_progress(done, len(listing.commits))
        except LogChangedError:
            continue
        on_progress(len(listing.commits), len(listing.commits))
        return audit, listing
    raise StorageUnavailableError(
        f"entries of the log vanished while it was read, {_TRIES} times in turn",
        where=log.where,
        remedy="try again when the log clean-up is through",
    )


def _cleanup_possible(table: str, storage: StorageEnvironment, now: datetime) -> bool | None:
    """Whether the table is older than its log retention; None when it cannot be opened."""
    try:
        metadata = DeltaTable(table, storage_options=options_for(table, storage)).metadata()
    except (DeltaError, OSError):
        return None
    if metadata.created_time is None:
        return None
    text = metadata.configuration.get("delta.logRetentionDuration", "")
    retention = interval(text) or DEFAULT_LOG_RETENTION
    return now.timestamp() - metadata.created_time / 1000 > retention.total_seconds()


def _with_data(
    report: AuditReport, audit: LogAudit, target: AuditTarget, storage: StorageEnvironment
) -> AuditReport:

    coverage, batches = audit.effective()
    held = Held()
    # The version that the log audit saw: a batch committed since is in neither account.
    try:
        table = collect(target.table, storage, held, report.last_version)
        # A batch's rejects are committed before its table commit: the quarantine may be ahead.
        rejected = collect(target.quarantine, storage, held.until(coverage.ends()))
    except StorageUnavailableError as error:
        if report.clean:
            raise
        # A damaged log is often why; what was found in it must not be lost over that.
        return replace(report, unproved=(*report.unproved, f"not scanned: {error.what}"))
    unplaced = table.without_coordinates + rejected.without_coordinates
    counts = RowCounts(table.rows, rejected.rows, unplaced)
    return audit_data(report, coverage, batches, held, counts)
