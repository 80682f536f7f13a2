"""Carries out a compaction plan with Spark: one OPTIMIZE, and so one commit, for each batch.

OPTIMIZE commits with `dataChange=false`: rows, ledgers and streaming readers of the table are not
affected, and appends never conflict with it. A MERGE, UPDATE or DELETE of the same files does;
then one of the two must repeat its work, and here it is this one. If the DML was announced, it is
always this one: the batch waits for it, and the LogStore turns its commit back.
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

from ingest_platform.maintain.auto_compaction.markers import YIELD_TO
from ingest_platform.maintain.compaction.announced_dml import AnnouncedDml, DmlInFlightError
from ingest_platform.maintain.compaction.conflicts import conflict_of
from ingest_platform.maintain.compaction.plan import Batch, CompactionPlan, small_below
from ingest_platform.maintain.compaction.sql import optimize_statement
from ingest_platform.spec import CompactionSpec

log = logging.getLogger(__name__)

TRIES: Final = 4
_OPTIMIZE: Final = "spark.databricks.delta.optimize."
_CUBE: Final = f"{_OPTIMIZE}clustering.mergeStrategy.minCubeSize."


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
        yielded: The conflict, or the DML in flight, because of which the batch was given up; None
            if it was committed.
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
        dml: DML that was announced; None to look for none.
        wait: Passed to tenacity; tests make it short.
    """

    spark: SparkSession
    path: str
    types: Mapping[str, str]
    rules: CompactionSpec
    dml: AnnouncedDml | None = None
    wait: Any = field(default_factory=lambda: wait_exponential_jitter(initial=1, max=30, jitter=2))

    def run(self, plan: CompactionPlan, told: Callable[[BatchResult], None]) -> list[BatchResult]:
        """Carry out the plan; `told` hears of each batch as it ends.

        Each batch commits by itself, so that whatever ends this process leaves the finished
        batches in the table. A batch that loses against other writers again and again is given up
        (its result says so), and the next one goes on.
        """
        results = []
        with self._settings():
            for batch in plan.batches:
                result = self._batch(batch)
                told(result)
                results.append(result)
        return results

    def _batch(self, batch: Batch) -> BatchResult:
        started, lost = time.monotonic(), list[str]()

        def note(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            if error and (kind := conflict_of(error)):
                log.info("%s: another writer was first (%s)", self.path, kind)
                lost.append(kind)

        retrying = Retrying(
            retry=retry_if_exception(lambda error: conflict_of(error) is not None),
            stop=stop_after_attempt(TRIES),
            wait=self.wait,
            after=note,
            reraise=True,
        )
        try:
            metrics = retrying(self._optimize, batch)
        except Exception as error:
            why = str(error) if isinstance(error, DmlInFlightError) else conflict_of(error)
            if why is None:
                raise
            log.warning("%s: gave up a batch after %d conflicts: %s", self.path, len(lost), why)
            seconds = time.monotonic() - started
            return BatchResult(conflicts=len(lost), yielded=why, seconds=seconds)
        return BatchResult(
            partitions=int(metrics["partitionsOptimized"]),
            files_removed=int(metrics["numFilesRemoved"]),
            files_added=int(metrics["numFilesAdded"]),
            bytes_read=int(metrics["filesRemoved"]["totalSize"] or 0),
            bytes_written=int(metrics["filesAdded"]["totalSize"] or 0),
            conflicts=len(lost),
            seconds=time.monotonic() - started,
        )

    def _optimize(self, batch: Batch) -> Mapping[str, Any]:
        """Run the statement on the newest snapshot, which a repetition reads afresh."""
        if self.dml:
            self.dml.wait()
        for key, size in self._limits(batch).items():
            self.spark.conf.set(key, str(size))
        columns = self.rules.z_order if batch.cluster else ()
        statement = optimize_statement(self.path, batch, self.types, columns)
        [row] = self.spark.sql(statement).collect()
        return row["metrics"].asDict(recursive=True)

    def _limits(self, batch: Batch) -> dict[str, int]:
        """What this batch leaves as it is, in bytes.

        A table with CLUSTER BY is clustered cube by cube, whatever the sizes of its files, and
        Delta goes on with a cube until it has 100 GB: each run would write all of them anew. Here
        a cube is done at half of what one commit holds, and is left alone, as large files are,
        while only tiny ones are put together.
        """
        full = self.rules.commit_bytes // 2
        tiny = batch.below < small_below(self.rules)
        return {
            f"{_OPTIMIZE}minFileSize": batch.below,
            f"{_CUBE}threshold": batch.below if tiny else max(batch.below, full),
        }

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Delta's settings for the time of a run; the session may serve other tables afterwards."""
        settings = {
            f"{_OPTIMIZE}maxFileSize": str(self.rules.target_file_size),
            # One partition alone may be larger than what one commit shall hold.
            f"{_OPTIMIZE}batchSize": str(self.rules.commit_bytes),
            f"{_CUBE}targetCubeSize": str(self.rules.commit_bytes),
        }
        if self.dml:
            settings[YIELD_TO] = self.dml.markers
        for key, value in settings.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key in (*settings, f"{_OPTIMIZE}minFileSize", f"{_CUBE}threshold"):
                self.spark.conf.unset(key)
