"""Checkpoints of a table's log: how far apart, and how one is written.

The platform's tables ask Delta for none (a very long `delta.checkpointInterval`), since Delta
writes them inside a commit, and the batch would wait for it, several times as long as it takes
itself. A run of compaction writes them when it is done, in a driver that no batch waits for; the
stream's driver writes those that no run came for. Nothing depends on when, or by whom: a checkpoint
only shortens what a reader has to replay.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

EVERY: Final = 10  # commits, Delta's own default, while the table is small

# A checkpoint holds all live files and all tombstones: at 160,000 of them some 18 MB, which every
# ten commits would be more than the data. So it comes once per commit and so many actions in it,
# and the log's own growth stays at about 0.1 MB a commit (docs/operations.md has the arithmetic).
ACTIONS_A_COMMIT: Final = 1_000
SELDOMEST: Final = 250  # commits that a reader may have to replay


@dataclass(frozen=True)
class LogCheckpoint:
    """The newest checkpoint of a log.

    Attributes:
        version: Of the table.
        actions: Live files, tombstones and the rest that it holds.
    """

    version: int
    actions: int


def commits_apart(actions: int) -> int:
    """Commits from a checkpoint with so many actions to the next one."""
    return min(max(EVERY, actions // ACTIONS_A_COMMIT), SELDOMEST)


def last_checkpoint(spark: SparkSession, path: str) -> LogCheckpoint:
    """What the table's `_last_checkpoint` names, one request; version 0 if there is none."""
    found = _delta_log(spark, path).readLastCheckpointFile()
    if found.isEmpty():
        return LogCheckpoint(0, 0)
    return LogCheckpoint(int(found.get().version()), int(found.get().size()))


def write_checkpoint(spark: SparkSession, path: str) -> None:
    """Write one of the newest version that this session knows, and remove what the log may forget.

    Raises:
        Exception: Whatever Spark throws. The table is whole without it.
    """
    jvm: Any = spark._jvm
    delta_log = _delta_log(spark, path)
    delta_log.checkpointAndCleanUpDeltaLog(
        delta_log.unsafeVolatileSnapshot(), jvm.scala.Option.empty()
    )


def write_due_checkpoint(spark: SparkSession, path: str) -> bool:
    """Write one if enough commits came since the last; tell whether.

    It is a favour of whoever has the log at hand, so a failure is only logged.
    """
    try:
        last = last_checkpoint(spark, path)
        version = int(_delta_log(spark, path).unsafeVolatileSnapshot().version())
        if version - last.version < commits_apart(last.actions):
            return False
        write_checkpoint(spark, path)
    except Exception:
        # What the run was for is done, and the stream's driver writes one when it is overdue.
        log.warning("the log's checkpoint could not be written", exc_info=True)
        return False
    return True


def _delta_log(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
