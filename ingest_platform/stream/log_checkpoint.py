"""Checkpoints of the table's log, written beside the batches instead of inside them.

Delta writes a checkpoint in the commit of every tenth version, and that batch waits for it, several
times as long as it takes itself. Here the table asks for none (a very long
`delta.checkpointInterval`), and the driver writes them from a thread of its own. Nothing depends on
when: a checkpoint only shortens what a reader has to replay.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

EVERY: Final = 10  # commits, Delta's own default, while the table is small

# A checkpoint holds all live files and all tombstones: at 160,000 of them some 18 MB, which every
# ten commits would be more than the data. So it comes once per commit and so many actions in it,
# and the log's own growth stays at about 0.1 MB a commit (docs/operations.md has the arithmetic).
ACTIONS_A_COMMIT: Final = 1_000
SELDOMEST: Final = 250  # commits that a reader may have to replay

# Of a stream with many small batches a second every tenth would meet one, and take twice as long.
SOONEST_SECONDS: Final = 30.0

POOL: Final = "maintenance"


def is_due(commits: int, seconds: float, actions: int) -> bool:
    """Whether the log is to be checkpointed.

    Args:
        commits: Since the last checkpoint.
        seconds: Since then.
        actions: That it held.
    """
    enough = max(EVERY, actions // ACTIONS_A_COMMIT)
    return commits >= SELDOMEST or (commits >= enough and seconds >= SOONEST_SECONDS)


class LogCheckpointer:
    """Checkpoints one table's log, the more seldom the larger it is; at most one at a time."""

    def __init__(
        self, spark: SparkSession, path: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spark = spark
        self._path = path
        self._clock = clock
        self._last: int | None = None
        self._last_at = clock()
        self._actions = 0
        self._running: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log-checkpoint")

    def committed(self, version: int) -> None:
        """Take note of a commit; start a checkpoint when one is due and none is running."""
        if self._last is None:
            self._last = version - version % EVERY
        now = self._clock()
        due = is_due(version - self._last, now - self._last_at, self._actions)
        if not due or (self._running and not self._running.done()):
            return
        self._last, self._last_at = version, now
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
            written = delta_log.readLastCheckpointFile()
            if written.isDefined():
                self._actions = int(written.get().size())
        except Exception:
            # The table is whole without it; the next one, some commits later, will do.
            log.warning("the log's checkpoint could not be written", exc_info=True)
