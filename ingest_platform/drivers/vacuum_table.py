"""Vacuums one table: what the log says decides whether Spark is needed, and how to find files."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import SparkSession

from ingest_platform.adapters.data_files import table_facts
from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.adapters.table_storage import TableStorage, table_storage
from ingest_platform.maintain.table_report import TableReport
from ingest_platform.maintain.turn import Turns, left_to
from ingest_platform.maintain.vacuum.plan import VacuumMemory, VacuumPlan, Way, plan_vacuum
from ingest_platform.maintain.vacuum.retention import retention
from ingest_platform.maintain.vacuum.run import Vacuum, VacuumResult
from ingest_platform.model.lease import Lease
from ingest_platform.spec import StorageEnvironment, StreamSpec

log = logging.getLogger(__name__)

# A vacuum is a few short queries in a fresh JVM, which spends more on optimising its code than it
# wins: 10,000 files were found in 9 s instead of 12, though 400,000 in 37 instead of 33
# (docs/performance.md).
JVM_OPTIONS: Final = ("-XX:TieredStopAtLevel=1",)

# Commits looked at: since the last look, and the first time. If there are more, the oldest of them
# stands for them; and the first vacuum lists the storage anyway.
_COMMITS = 2000
_COMMITS_AT_FIRST = 100


@dataclass(frozen=True)
class VacuumOptions:
    """What a person may want of one run.

    Attributes:
        dry_run: Find the files, delete none.
        full: List the storage whatever the log says.
        keep: Another retention than the table's.
        override: Why less is kept than is safe.
    """

    dry_run: bool = False
    full: bool = False
    keep: timedelta | None = None
    override: str | None = None


def vacuum_table(
    spec: StreamSpec,
    storage: StorageEnvironment,
    session: Callable[[], SparkSession],
    now: datetime,
    options: VacuumOptions,
) -> TableReport:
    """Plan, and vacuum if files have expired.

    Raises:
        UnsafeRetentionError: Less would be kept than is safe, and nobody said why.
        IngestError: Log or storage cannot be used, or Spark does not start.
    """
    started = time.monotonic()
    table = TableLog(spec.table.path, storage)
    version, facts = table.version(), table_facts(spec.table.path, storage)
    if version is None or facts is None:
        return TableReport(spec.name, "there is no table yet")
    kept = retention(
        facts.properties, where=spec.table.path, wanted=options.keep, override=options.override
    )
    objects, key = object_store(spec.root, storage), f"streams/{spec.name}/vacuum.json"
    memory = _looked(VacuumMemory.from_json(objects.get(key)), table, version)
    plan = _plan(spec, memory, options, keep=kept.keep, created=facts.created, now=now)
    log.info("%s: %s", spec.name, plan.reason)
    result, done = VacuumResult(Way.LITE), f"nothing to vacuum: {plan.reason}"
    other = None
    if plan.way:
        with _turn(objects, spec.name, options) as other:
            if other:
                done = left_to(other)
            else:
                vacuum = Vacuum(session(), spec.table.path, _files(spec, storage), kept)
                expired = memory.expired(now, kept.keep)
                newest = expired[-1].version if expired else None
                result = vacuum.run(plan.way, expired=newest, dry_run=options.dry_run)
                done = _done(plan, result, dry_run=options.dry_run)
                if not options.dry_run:
                    memory = memory.vacuumed(result.way, now, kept.keep)
    if not (options.dry_run or other):  # the run that has its turn remembers more than this one
        objects.put(key, memory.to_json())
    numbers = {
        **_numbers(plan, result, dry_run=options.dry_run),
        "retention_hours": kept.keep / timedelta(hours=1),
        "removals_waiting": sum(removal.files for removal in memory.removals),
        "seconds": round(time.monotonic() - started, 3),
        "table_version": table.version() or version,
    }
    return TableReport(spec.name, done, numbers)


def _plan(
    spec: StreamSpec,
    memory: VacuumMemory,
    options: VacuumOptions,
    *,
    keep: timedelta,
    created: datetime | None,
    now: datetime,
) -> VacuumPlan:
    if options.full:
        return VacuumPlan(Way.FULL, "a full listing was asked for")
    return plan_vacuum(memory, spec.maintenance.vacuum, keep=keep, created=created, now=now)


def _looked(memory: VacuumMemory, table: TableLog, version: int) -> VacuumMemory:
    known = -1 if version < memory.version else memory.version
    commits = table.commits(known, limit=_COMMITS if known >= 0 else _COMMITS_AT_FIRST)
    return memory.with_commits(commits, version)


def _turn(
    objects: ObjectStore, name: str, options: VacuumOptions
) -> AbstractContextManager[Lease | None]:
    """A dry run changes nothing, so it needs no turn."""
    return nullcontext() if options.dry_run else Turns(objects, name).turn()


def _files(spec: StreamSpec, storage: StorageEnvironment) -> TableStorage:
    per_second = spec.maintenance.vacuum.deletes_per_second
    return table_storage(spec.table.path, storage, per_second=per_second)


def _numbers(plan: VacuumPlan, result: VacuumResult, *, dry_run: bool) -> dict[str, float]:
    return {
        "files_deleted": 0 if dry_run else result.files,
        "files_found": result.files,
        "bytes_deleted": 0 if dry_run else result.bytes,
        "bytes_found": result.bytes,
        "files_listed": result.listed,
        "full": int(plan.way is not None and result.way is Way.FULL),
    }


def _done(plan: VacuumPlan, result: VacuumResult, *, dry_run: bool) -> str:
    verb = "would be" if dry_run else "were"
    size = f"{result.bytes / 1e6:.1f} MB"
    return f"{result.files} files, {size}, {verb} deleted ({result.way.value}: {plan.reason})"
