"""Take out of a table what lies beyond a cut, in a commit that accounts for it.

Called again after a kill, each function does what is left to do: the repair's number is the
`txnVersion` of its commits, and deleting what is gone changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from ingest_platform.model.account import CLOSED, RepairRecord, repair_app_id
from ingest_platform.model.offsets import Positions
from ingest_platform.model.user_metadata import to_user_metadata
from ingest_platform.stream.transaction import Transaction

_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
_CONFLICTS: Final = ("ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException")
_TRIES: Final = 5

Fence = Callable[[], None]


def beyond(kept: Positions, topics: tuple[str, ...]) -> Column:
    """Rows of these topics at or after `kept`; all of a partition that `kept` does not name."""
    condition = F.lit(False)
    for topic in topics:
        of_topic = F.col("_kafka_topic") == topic
        partitions = kept.by_topic.get(topic, {})
        # As comparisons, which file statistics can answer; most files need not be read then.
        unnamed = F.col("_kafka_partition") > max(partitions, default=-1)
        condition = condition | (of_topic & unnamed)
        for partition in set(range(max(partitions, default=0))) - set(partitions):
            condition = condition | (of_topic & (F.col("_kafka_partition") == partition))
        for partition, end in sorted(partitions.items()):
            here = (F.col("_kafka_partition") == partition) & (F.col("_kafka_offset") >= end)
            condition = condition | (of_topic & here)
    return condition


def after_batches(kept: Mapping[str, int]) -> Column:
    """Rejected records of these sessions' batches after the named ones."""
    condition = F.lit(False)
    for session, batch in sorted(kept.items()):
        condition = condition | ((F.col("session") == session) & (F.col("batch") > batch))
    return condition


def delete_rows(
    spark: SparkSession, path: str, rows: Column, record: RepairRecord, fence: Fence
) -> None:
    """Delete rows, and leave the repair's record in the log, also if there were none."""
    if is_marked(spark, path, record):
        return
    fence()
    with _user_metadata(spark, record.to_user_metadata()):
        for attempt in _conflicting():
            with attempt:
                DeltaTable.forPath(spark, path).delete(rows)
    mark(spark, path, record, fence)


def restore(spark: SparkSession, path: str, record: RepairRecord, fence: Fence) -> None:
    """Bring the whole table back to the record's `kept_version`, and leave the record."""
    if is_marked(spark, path, record):
        return
    fence()
    with _user_metadata(spark, record.to_user_metadata()):
        DeltaTable.forPath(spark, path).restoreToVersion(record.kept_version)
    mark(spark, path, record, fence)


def close_lineages(spark: SparkSession, path: str, sessions: Iterable[str], fence: Fence) -> None:
    """End these sessions in the table's own log: no batch of theirs can be committed any more.

    A lease only keeps out drivers that ask it. One that hung between asking and committing is
    refused by Delta itself then, since its `txnAppId` has moved on.
    """
    for session in sorted(sessions):
        txn = Transaction(spark, path)
        if txn.last_batch(session) < CLOSED:
            fence()
            txn.commit(session, CLOSED, to_user_metadata("ingest_closed", {"session": session}))


def is_marked(spark: SparkSession, path: str, record: RepairRecord) -> bool:
    """Whether this repair is through with the table."""
    return Transaction(spark, path).last_batch(repair_app_id(record.stream)) >= record.repair


def mark(spark: SparkSession, path: str, record: RepairRecord, fence: Fence) -> None:
    """Commit the record and nothing else: from here on, the removal is over."""
    app_id = repair_app_id(record.stream)
    txn = Transaction(spark, path)
    if txn.last_batch(app_id) < record.repair:
        fence()
        txn.commit(app_id, record.repair, record.to_user_metadata())


@contextmanager
def _user_metadata(spark: SparkSession, text: str) -> Iterator[None]:
    spark.conf.set(_USER_METADATA, text)
    try:
        yield
    finally:
        spark.conf.unset(_USER_METADATA)


def _conflicting() -> Retrying:
    """Compaction may rewrite a file while rows are deleted from it: then that begins anew."""
    return Retrying(
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(_TRIES),
        wait=wait_exponential(min=1, max=10),
        reraise=True,
    )


def _is_conflict(error: BaseException) -> bool:
    named = isinstance(error, Py4JJavaError | PySparkException)
    return named and any(kind in f"{type(error).__name__} {error}" for kind in _CONFLICTS)
