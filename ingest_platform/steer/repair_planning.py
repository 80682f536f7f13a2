"""Look at a stream that is in trouble, and make the plan of its repair. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from ingest_platform.adapters.delta_tables import open_table
from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.adapters.table_history import newest_account
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.errors import CheckpointDamagedError, DataProblem, LogDamagedError
from ingest_platform.maintain.audit.report import AuditReport, Kind
from ingest_platform.maintain.audit.run import AuditTarget, Examined, examine
from ingest_platform.maintain.repair.cut import (
    MENDED_BY_CUTTING,
    History,
    Place,
    below_all,
    kept_positions,
    last_good_version,
    positions,
    reaches_back,
)
from ingest_platform.maintain.repair.journal import RepairJournal
from ingest_platform.maintain.repair.next_offsets import (
    Bounds,
    lost_offsets,
    next_offsets,
    topic_findings,
)
from ingest_platform.maintain.repair.objections import with_objections
from ingest_platform.maintain.repair.touched import (
    ends_in_data,
    quarantine_touched,
    table_touched,
)
from ingest_platform.maintain.topic_bounds import topic_bounds
from ingest_platform.model.account import RepairRecord, repair_app_id
from ingest_platform.model.offsets import Positions
from ingest_platform.model.repair import Finding, Removal, RepairPlan, Symptom, Wishes
from ingest_platform.spec import StorageEnvironment, StreamSpec
from ingest_platform.steer.resumption import disagreement
from ingest_platform.stream.checkpoint import Checkpoint

_DATA_KINDS = {Kind.DATA_MISSING, Kind.DATA_DOUBLED, Kind.DATA_UNCLAIMED, Kind.DATA_SURPLUS}


@dataclass(frozen=True)
class Patient:
    """The stream, and how to reach everything of it.

    Attributes:
        spec: The stream.
        storage: Its object store's credentials.
        environ: Environment variables, which name the brokers.
        now: The clock.
    """

    spec: StreamSpec
    storage: StorageEnvironment
    environ: Mapping[str, str]
    now: Callable[[], datetime]

    @property
    def objects(self) -> ObjectStore:
        """The stream's state."""
        return object_store(self.spec.root, self.storage)

    @property
    def checkpoint_key(self) -> str:
        """Key of the checkpoint's folder."""
        return f"streams/{self.spec.name}/checkpoint"

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint."""
        return Checkpoint(self.objects, self.checkpoint_key)

    @property
    def journal(self) -> RepairJournal:
        """The journal of its repairs."""
        return RepairJournal(self.objects, self.spec.name)

    def bounds(self) -> Bounds:
        """What the brokers hold of its topics."""
        return topic_bounds(self.spec.source, self.environ)

    def examine(self, *, data: bool, topic: bool = False) -> Examined:
        """Audit it."""
        target = AuditTarget(self.spec.table.path, self.spec.table.quarantine)
        brokers = self.bounds if topic else None
        return examine(target, self.storage, self.now(), data=data, brokers=brokers)


@dataclass(frozen=True)
class _Cut:
    """Where the good state ends, and how rows after it leave the table."""

    version: int
    removal: Removal


def make_plan(patient: Patient, wishes: Wishes, number: int | None = None) -> RepairPlan | None:
    """The plan; None if nothing is wrong and nothing was asked for.

    `number` is that of a repair that was begun already.

    Raises:
        UserError: There is no table.
        LogDamagedError: Entries of its log are missing: nobody knows what they held.
        KafkaUnreachableError, StorageUnavailableError: It cannot be looked at now.
    """
    examined = patient.examine(data=wishes.data)
    _refuse_a_hole(examined.report, patient.spec.table.path)
    bounds = patient.bounds()
    history, report = _history(examined), examined.report
    findings = [*_of_checkpoint(patient), *_of_report(report), *_of_wishes(wishes)]
    cut = _cut(
        patient.spec,
        examined,
        history,
        last_good_version(
            history, report, since_ms=wishes.since_ms(), to_version=wishes.to_version
        ),
    )
    version = cut.version
    undone = [b for b in history.batches if b.version > version]
    kept = _with_expired(patient, history, kept_positions(history, version), bounds)
    recreated = _recreated(patient.spec, wishes, history, version)
    start = next_offsets(kept, _declared(patient.spec), bounds, recreated)
    accepted = lost_offsets(kept, bounds, recreated)
    findings += topic_findings(kept, bounds, accepted, recreated)
    if not findings:
        return None
    beyond = {**dict.fromkeys(bounds, 0), **kept}
    record = RepairRecord(
        stream=patient.spec.name,
        repair=number or _next_number(patient),
        kept_version=version,
        kept=positions(kept.items()),
        start=start,
        accepted=accepted,
        recreated=recreated,
    )
    table, rows = patient.spec.table, sum(b.written for b in undone)
    plan = RepairPlan(
        record=record,
        wishes=wishes,
        findings=tuple(findings),
        removal=cut.removal,
        by_offset=_by_offset(history),
        undone=len(undone),
        kept_batches=_kept_batches(history, version, _lineage(patient)),
        table=table_touched(open_table(table.path, patient.storage), beyond, rows),
        quarantine=quarantine_touched(
            table.quarantine, patient.storage, beyond, patient.spec.source.all_topics
        ),
        session=_lineage(patient),
        made_at=patient.now().isoformat(timespec="seconds"),
    )
    return with_objections(plan, bounds, examined.log.foreign_since(version))


def _refuse_a_hole(report: AuditReport, path: str) -> None:
    missing = [error.what for error in report.errors if error.kind is Kind.MISSING_ENTRY]
    if missing:
        raise LogDamagedError(
            "; ".join(missing),
            where=path,
            remedy="bring the entries back from a backup or a versioned bucket, then plan again",
        )


def _history(examined: Examined) -> History:
    coverage, batches = examined.log.effective()
    report = examined.report
    return History(
        report.first_version or 0,
        report.last_version or 0,
        batches,
        coverage,
        examined.log.repairs(),
        report.incarnations,
        examined.log.lineage_of_batches(),
    )


def _with_expired(
    patient: Patient, history: History, kept: dict[Place, int], bounds: Bounds
) -> dict[Place, int]:
    """Partitions that only expired log entries told of: the data's coordinates know them.

    Raises:
        DataProblem: The table has none.
    """
    if not history.first_version or bounds.keys() <= kept.keys():
        return kept
    table = patient.spec.table
    if not table.coordinates:
        raise DataProblem(
            "nothing says where the table ends: its log no longer has a batch of every partition, "
            "and its rows have no coordinates",
            where=table.path,
            remedy="bring the checkpoint back from a backup",
        )
    return {**ends_in_data(table.path, patient.storage, history.last_version), **kept}


def _of_checkpoint(patient: Patient) -> Iterator[Finding]:
    """The driver's own questions to checkpoint and table."""
    name = patient.spec.name
    account = newest_account(TableLog(patient.spec.table.path, patient.storage), name)
    problem = disagreement(patient.checkpoint, account, name)
    if problem is not None:
        yield Finding(Symptom.CHECKPOINT, problem.what)


def _of_report(report: AuditReport) -> Iterator[Finding]:
    for error in report.errors:
        if error.kind in MENDED_BY_CUTTING:
            symptom = Symptom.DATA if error.kind in _DATA_KINDS else Symptom.LEDGER
            yield Finding(symptom, error.what)


def _of_wishes(wishes: Wishes) -> Iterator[Finding]:
    if wishes.since:
        yield Finding(
            Symptom.REPLAY, f"asked to read again what was committed since {wishes.since}"
        )
    if wishes.to_version is not None:
        what = f"asked to read again what was committed after version {wishes.to_version}"
        yield Finding(Symptom.REPLAY, what)


def _recreated(spec: StreamSpec, wishes: Wishes, history: History, version: int) -> tuple[str, ...]:
    """Topics whose offsets begin again: as asked for, or known from repairs that are undone."""
    if wishes.topic_recreated:
        return spec.source.all_topics
    undone = (record for at, record in history.repairs if at > version)
    return tuple(sorted({topic for record in undone for topic in record.recreated}))


def _by_offset(history: History) -> bool:
    """Whether an offset means one record: no topic was made anew."""
    return not any(history.incarnations.values())


def _cut(spec: StreamSpec, examined: Examined, history: History, version: int) -> _Cut:
    """By coordinates, which leave alone what others wrote; by RESTORE where they do not tell."""
    if not (spec.table.coordinates and _by_offset(history)):
        return _Cut(version, Removal.RESTORE)
    if not reaches_back(history, version):
        return _Cut(version, Removal.DELETE)
    if not examined.log.foreign_since(version):
        return _Cut(version, Removal.RESTORE)
    return _Cut(below_all(history, version), Removal.DELETE)


def _kept_batches(history: History, version: int, session: str | None) -> dict[str, int]:
    """Per session that may have batches beyond the cut, planned ones too: its last one before."""
    last: dict[str, int] = {session: -1} if session else {}
    if history.batches:
        last.setdefault(history.batches[-1].session, -1)
    for batch in history.batches:
        if batch.version > version:
            last.setdefault(batch.session, -1)
    for batch in history.batches:
        if batch.version <= version and batch.session in last:
            last[batch.session] = max(last[batch.session], batch.number)
    return last


def _declared(spec: StreamSpec) -> Positions:
    declared = spec.source.starting_offsets
    return Positions.from_dict(declared) if isinstance(declared, dict) else Positions()


def _lineage(patient: Patient) -> str | None:
    try:
        return patient.checkpoint.lineage()
    except CheckpointDamagedError:
        return None


def _next_number(patient: Patient) -> int:
    """One more than any before, though the journal, or the log's older entries, may be lost."""
    table = open_table(patient.spec.table.path, patient.storage)
    told = table.transaction_version(repair_app_id(patient.spec.name)) if table else None
    return max([told or 0, *patient.journal.numbers()]) + 1
