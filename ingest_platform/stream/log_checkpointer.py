"""Checkpoints of the table's log that nobody else wrote, beside the batches instead of in them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from pyspark.sql import SparkSession

from ingest_platform.spark.log_checkpoint import (
    SELDOMEST,
    LogCheckpoint,
    commits_apart,
    last_checkpoint,
    write_checkpoint,
)

log = logging.getLogger(__name__)

# Of a stream with many small batches a second every tenth would meet one, and take twice as long.
SOONEST_SECONDS: Final = 30.0

POOL: Final = "maintenance"


def is_due(commits: int, seconds: float, actions: int, *, helped: bool) -> bool:
    """Whether the stream's driver is to checkpoint the log.

    Args:
        commits: Since the last checkpoint.
        seconds: Since then.
        actions: That it held.
        helped: Whether runs of compaction write checkpoints, too. What they do not come for in
            time is left to the stream only when a reader has as much to replay as it ever may:
            beside batches of 0.2 s a checkpoint slows five to ten of them.
    """
    if commits >= SELDOMEST:
        return True
    return not helped and commits >= commits_apart(actions) and seconds >= SOONEST_SECONDS


class LogCheckpointer:
    """Checkpoints one table's log; at most one at a time.

    Args:
        spark: The stream's session.
        path: The table.
        helped: As in `is_due`.
        clock: Seconds.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        *,
        helped: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark = spark
        self._path = path
        self._helped = helped
        self._clock = clock
        self._last: LogCheckpoint | None = None
        self._last_at = clock()
        self._running: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log-checkpoint")

    def committed(self, version: int) -> None:
        """Take note of a commit; start a checkpoint when one is due and none is running."""
        if self._running and not self._running.done():
            return
        if self._last is None:
            self._running = self._thread.submit(self._catch_up, version, 0.0)
        elif self._is_due(version, self._last, seconds := self._clock() - self._last_at):
            self._running = self._thread.submit(self._catch_up, version, seconds)

    def settled(self, timeout: float) -> bool:
        """Wait so many seconds for the one that is running; tell whether it ended."""
        return self._running is None or bool(wait([self._running], timeout).done)

    def close(self) -> None:
        """Wait for the one that is running."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _is_due(self, version: int, last: LogCheckpoint, seconds: float) -> bool:
        return is_due(version - last.version, seconds, last.actions, helped=self._helped)

    def _catch_up(self, version: int, seconds: float) -> None:
        """Write one, unless another writer did."""
        try:
            # Job properties belong to the thread: this must not change the stream's pool.
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
            last = last_checkpoint(self._spark, self._path)
            if self._is_due(version, last, seconds):
                write_checkpoint(self._spark, self._path)
                last = last_checkpoint(self._spark, self._path)
        except Exception:
            # The table is whole without it; the next one, some commits later, will do.
            log.warning("the log's checkpoint could not be written", exc_info=True)
            last = LogCheckpoint(version, self._last.actions if self._last else 0)
        self._last, self._last_at = last, self._clock()
