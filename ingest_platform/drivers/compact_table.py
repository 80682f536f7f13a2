"""Compacts one table: plan from the log, then Spark if the plan is not empty."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from pyspark.sql import SparkSession

from ingest_platform.adapters.data_files import LiveFiles, live_files
from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.maintain.compaction.announced_dml import AnnouncedDml
from ingest_platform.maintain.compaction.plan import CompactionPlan, plan_compaction
from ingest_platform.maintain.compaction.run import BatchResult, Compactor
from ingest_platform.maintain.table_report import TableReport
from ingest_platform.maintain.turn import Turns, left_to
from ingest_platform.spark.log_checkpoint import write_due_checkpoint
from ingest_platform.spec import StorageEnvironment, StreamSpec

log = logging.getLogger(__name__)


def compact_table(
    spec: StreamSpec,
    storage: StorageEnvironment,
    session: Callable[[], SparkSession],
    now: datetime,
    *,
    dry_run: bool,
) -> TableReport:
    """Plan, and carry the plan out unless it is empty or a dry run.

    Raises:
        IngestError: The log cannot be read, or Spark does not start.
        Exception: Whatever Spark throws but conflicts, which are told in the report.
    """
    started = time.monotonic()
    before = live_files(spec.table.path, storage)
    if before is None:
        return TableReport(spec.name, "there is no table yet")
    plan = plan_compaction(before.files, spec.maintenance.compaction, now)
    log.info("%s: %s", spec.name, _planned(plan))
    results: list[BatchResult] = []
    after, done = before, _planned(plan)
    if plan.batches and not dry_run:
        state = object_store(spec.root, storage)
        with Turns(state, spec.name).turn() as other:
            if other:
                done = left_to(other)
            else:
                results = _carry_out(plan, spec, before, state, session())
                after, done = live_files(spec.table.path, storage) or before, _done(results)
    seconds = time.monotonic() - started
    return TableReport(
        spec.name, done, _numbers(before, after, plan, results, seconds), plan.reasons()
    )


def _carry_out(
    plan: CompactionPlan,
    spec: StreamSpec,
    files: LiveFiles,
    state: ObjectStore,
    session: SparkSession,
) -> list[BatchResult]:
    path = spec.table.path
    compactor = Compactor(
        session,
        path,
        files.partition_types,
        spec.maintenance.compaction,
        dml=AnnouncedDml(state, path),
    )
    results = compactor.run(plan, lambda result: _tell(spec.name, result))
    if write_due_checkpoint(session, path):
        log.info("%s: the log has a checkpoint", spec.name)
    return results


def _planned(plan: CompactionPlan) -> str:
    if not plan.batches:
        return "nothing to compact"
    files, size = sum(w.files for w in plan.work), sum(w.bytes for w in plan.work)
    return (
        f"to compact: {files} files, {size / 1e6:.1f} MB, in {len(plan.work)} partitions and "
        f"{len(plan.batches)} commits"
    )


def _done(results: Sequence[BatchResult]) -> str:
    removed, added = sum(r.files_removed for r in results), sum(r.files_added for r in results)
    text = f"{removed} files became {added}"
    given_up = [r.yielded for r in results if r.yielded]
    if given_up:
        text += f"; {len(given_up)} batches yielded to other writers ({', '.join(set(given_up))})"
    return text


def _tell(name: str, result: BatchResult) -> None:
    log.info(
        "%s: %d partitions, %d files became %d, %d conflicts, %.1f s",
        name,
        result.partitions,
        result.files_removed,
        result.files_added,
        result.conflicts,
        result.seconds,
    )


def _numbers(
    before: LiveFiles,
    after: LiveFiles,
    plan: CompactionPlan,
    results: Sequence[BatchResult],
    seconds: float,
) -> dict[str, float]:
    return {
        "files_before": len(before.files),
        "files_after": len(after.files),
        "bytes_before": before.bytes,
        "bytes_after": after.bytes,
        "partitions_planned": len(plan.work),
        "partitions_compacted": sum(r.partitions for r in results),
        "partitions_skipped": len(plan.skipped),
        "files_removed": sum(r.files_removed for r in results),
        "files_added": sum(r.files_added for r in results),
        "bytes_rewritten": sum(r.bytes_read for r in results),
        "commits": sum(1 for r in results if r.files_added),
        "conflicts": sum(r.conflicts for r in results),
        "yielded": sum(1 for r in results if r.yielded),
        "seconds": round(seconds, 3),
        "table_version": after.version,
    }
