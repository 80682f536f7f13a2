"""Checkpoints of the table's log, written beside the batches instead of inside them.

Delta writes a checkpoint in the commit of every tenth version, and that batch waits for it, several
times as long as it takes itself. Here the table asks for none (a very long
`delta.checkpointInterval`), and the driver writes them from a thread of its own. Nothing depends on
when: a checkpoint only shortens what a reader has to replay.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

EVERY: Final = 10  # commits, Delta's own default
POOL: Final = "maintenance"


class LogCheckpointer:
    """Checkpoints one table's log every `EVERY` commits; at most one at a time."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self._last: int | None = None
        self._running: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log-checkpoint")

    def committed(self, version: int) -> None:
        """Take note of a commit; start a checkpoint when one is due and none is running."""
        if self._last is None:
            self._last = version - version % EVERY
        if version - self._last < EVERY or (self._running and not self._running.done()):
            return
        self._last = version
        self._running = self._thread.submit(self._write)

    def close(self) -> None:
        """Wait for the one that is running."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _write(self) -> None:
        try:
            # Job properties belong to the thread: this must not change the stream's pool.
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
            jvm: Any = self._spark._jvm
            delta_log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
                self._spark._jsparkSession, self._path
            )
            delta_log.checkpointAndCleanUpDeltaLog(
                delta_log.unsafeVolatileSnapshot(), jvm.scala.Option.empty()
            )
        except Exception:
            # The table is whole without it; the next one, ten commits later, will do.
            log.warning("the log's checkpoint could not be written", exc_info=True)
