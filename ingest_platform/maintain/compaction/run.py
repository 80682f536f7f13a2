"""Carries out a compaction plan with Spark: one OPTIMIZE, and so one commit, for each batch.

OPTIMIZE commits with `dataChange=false`: rows, ledgers and streaming readers of the table are not
affected, and appends never conflict with it. A MERGE, UPDATE or DELETE of the same files does;
then one of the two must repeat its work, and here it is this one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import SparkSession
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential_jitter,
)

from ingest_platform.maintain.compaction.conflicts import conflict_of
from ingest_platform.maintain.compaction.plan import Batch, CompactionPlan
from ingest_platform.maintain.compaction.sql import optimize_statement
from ingest_platform.spec import CompactionSpec

log = logging.getLogger(__name__)

TRIES: Final = 4
_OPTIMIZE: Final = "spark.databricks.delta.optimize."


@dataclass(frozen=True)
class BatchResult:
    """What became of one batch.

    Attributes:
        partitions: Partitions that were rewritten.
        files_removed: Small files that the commit took out of the table.
        files_added: Files that replace them.
        bytes_read: Sum of the removed files.
        bytes_written: Sum of the added files.
        conflicts: Times that another writer's commit came first.
        yielded: The conflict because of which the batch was given up; None if it was committed.
        seconds: Duration, with waits.
    """

    partitions: int = 0
    files_removed: int = 0
    files_added: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    conflicts: int = 0
    yielded: str | None = None
    seconds: float = 0.0


@dataclass
class Compactor:
    """Compacts one table.

    Attributes:
        spark: A session of the platform.
        path: The table.
        types: SQL type by partition column.
        rules: The spec's.
        wait: Passed to tenacity; tests make it short.
    """

    spark: SparkSession
    path: str
    types: Mapping[str, str]
    rules: CompactionSpec
    wait: Any = field(default_factory=lambda: wait_exponential_jitter(initial=1, max=30, jitter=2))

    def run(self, plan: CompactionPlan, told: Callable[[BatchResult], None]) -> list[BatchResult]:
        """Carry out the plan; `told` hears of each batch as it ends.

        Each batch commits by itself, so that whatever ends this process leaves the finished
        batches in the table. A batch that loses against other writers again and again is given up
        (its result says so), and the next one goes on.
        """
        results = []
        with self._file_sizes():
            for batch in plan.batches:
                result = self._batch(batch)
                told(result)
                results.append(result)
        return results

    def _batch(self, batch: Batch) -> BatchResult:
        started, conflicts = time.monotonic(), 0

        def lost(state: RetryCallState) -> None:
            nonlocal conflicts
            conflicts += 1
            kind = _conflict(state)
            log.info("%s: another writer was first (%s), trying again", self.path, kind)

        retrying = Retrying(
            retry=retry_if_exception(lambda error: conflict_of(error) is not None),
            stop=stop_after_attempt(TRIES),
            wait=self.wait,
            before_sleep=lost,
            reraise=True,
        )
        try:
            metrics = retrying(self._optimize, batch)
        except Exception as error:
            kind = conflict_of(error)
            if kind is None:
                raise
            log.warning("%s: gave up a batch after %d conflicts: %s", self.path, TRIES, kind)
            seconds = time.monotonic() - started
            return BatchResult(conflicts=TRIES, yielded=kind, seconds=seconds)
        return BatchResult(
            partitions=int(metrics["partitionsOptimized"]),
            files_removed=int(metrics["numFilesRemoved"]),
            files_added=int(metrics["numFilesAdded"]),
            bytes_read=int(metrics["filesRemoved"]["totalSize"] or 0),
            bytes_written=int(metrics["filesAdded"]["totalSize"] or 0),
            conflicts=conflicts,
            seconds=time.monotonic() - started,
        )

    def _optimize(self, batch: Batch) -> Mapping[str, Any]:
        """Run the statement on the newest snapshot, which a repetition reads afresh."""
        self.spark.conf.set(f"{_OPTIMIZE}minFileSize", str(batch.below))
        columns = self.rules.z_order if batch.cluster else ()
        statement = optimize_statement(self.path, batch, self.types, columns)
        [row] = self.spark.sql(statement).collect()
        return row["metrics"].asDict(recursive=True)

    @contextmanager
    def _file_sizes(self) -> Iterator[None]:
        """Delta's sizes for the time of a run; the session may serve other tables afterwards."""
        sizes = {
            f"{_OPTIMIZE}maxFileSize": self.rules.target_file_size,
            # One partition alone may be larger than what one commit shall hold.
            f"{_OPTIMIZE}batchSize": self.rules.commit_bytes,
        }
        for key, value in sizes.items():
            self.spark.conf.set(key, str(value))
        try:
            yield
        finally:
            for key in (*sizes, f"{_OPTIMIZE}minFileSize"):
                self.spark.conf.unset(key)


def _conflict(state: RetryCallState) -> str:
    error = state.outcome.exception() if state.outcome else None
    return (conflict_of(error) if error else None) or "unknown"
