"""A Delta transaction in the hand: write files, look at them, then commit, or do not.

`DataFrameWriter` writes and commits in one call, so what it puts into `userMetadata` must be known
before the first row is written. The ledger's counts are known only afterwards, and a batch whose
counts do not balance must not be committed. So the two halves of Delta's own `WriteIntoDelta` are
called apart, through the classes that it uses: `OptimisticTransaction.writeFiles` and `.commit`.
The jar lock pins those classes. See docs/adr/0002-transaction-in-hand.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

_COLLECT_STATISTICS: Final = "spark.databricks.delta.stats.collect"


@dataclass(frozen=True)
class WrittenFile:
    """One data file that was written but may not be committed yet; `stats` is Delta's JSON."""

    path: str
    bytes: int
    records: int
    stats: Mapping[str, Any]


class Transaction:
    """One optimistic transaction on one table. Not thread safe; use once."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        delta = self._jvm.org.apache.spark.sql.delta
        self._log = delta.DeltaLog.forTable(spark._jsparkSession, path)
        self._txn = self._log.startTransaction()
        self._actions: list[Any] = []

    def last_batch(self, app_id: str) -> int:
        """Newest batch that this lineage has committed here; -1 if none.

        Asking also makes a concurrent commit of the same lineage a conflict, so two drivers that
        hold the same batch cannot both commit it.
        """
        checksum = self._txn.snapshot().checksumOpt()
        known = checksum.get().setTransactions() if checksum.isDefined() else None
        if known is None or known.isEmpty():
            return int(self._txn.txnVersion(app_id))
        # `txnVersion` would replay the whole log with a Spark job (0.5 s, growing with the table)
        # although the version checksum beside the last commit holds the answer.
        self._txn.readTxn().addOne(app_id)
        versions = [int(t.version()) for t in self._as_java(known.get()) if t.appId() == app_id]
        return max(versions, default=-1)

    def write(
        self, rows: DataFrame, statistics: Callable[[str], Mapping[str, Any]] | None = None
    ) -> list[WrittenFile]:
        """Write the data files. Nothing is visible to readers before `commit`.

        Args:
            rows: In the table's columns.
            statistics: From a file's path, relative to the table, to its statistics; Delta collects
                them while it writes if not given.
        """
        # Delta asks the thread's active session, which in a batch is the query's clone, whatever
        # session the rows belong to; PySpark's own `active()` gives another one there.
        active = self._jvm.org.apache.spark.sql.SparkSession.active()
        active.conf().set(_COLLECT_STATISTICS, str(statistics is None).lower())
        actions = self._as_java(self._txn.writeFiles(rows._jdf))
        if statistics:
            actions = [self._with_statistics(action, statistics) for action in actions]
        self._actions += actions
        return [_written(json.loads(action.json())["add"]) for action in actions]

    def commit(self, app_id: str, batch: int, user_metadata: str) -> int:
        """Commit what was written, as a streaming update of this batch; returns the version.

        Raises:
            Py4JJavaError, PySparkException: Delta's conflict or the storage's error; whether the
                commit landed is then decided by `last_batch` of the next transaction.
        """
        jvm = self._jvm
        delta = jvm.org.apache.spark.sql.delta
        self._report_files()
        now = jvm.scala.Option.apply(jvm.java.lang.System.currentTimeMillis())
        actions = jvm.java.util.ArrayList()
        actions.add(delta.actions.SetTransaction.apply(app_id, batch, now))
        for action in self._actions:
            actions.add(action)
        operation = delta.DeltaOperations.StreamingUpdate(
            jvm.org.apache.spark.sql.streaming.OutputMode.Append(),
            app_id,
            batch,
            jvm.scala.Option.apply(user_metadata),
        )
        as_seq = jvm.scala.jdk.javaapi.CollectionConverters.asScala(actions).toSeq()
        return int(self._txn.commit(as_seq, operation))

    def _report_files(self) -> None:
        """`numAddedFiles` of the commit's metrics, as Delta's own streaming sink reports it."""
        jvm = self._jvm
        java_context: Any = self._spark.sparkContext._jsc
        context = java_context.sc()
        metrics = jvm.org.apache.spark.sql.execution.metric.SQLMetrics
        added = metrics.createMetric(context, "number of files added")
        added.set(len(self._actions))
        named = jvm.java.util.HashMap()
        named.put("numAddedFiles", added)
        as_scala = jvm.scala.jdk.javaapi.CollectionConverters.asScala(named)
        self._txn.registerSQLMetrics(
            self._spark._jsparkSession,
            getattr(jvm.scala.collection.immutable.Map, "from")(as_scala),
        )

    def _as_java(self, seq: Any) -> list[Any]:
        # By index: Py4J ends an iteration with an exception, whose translation costs 25 ms.
        items = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(seq)
        return [items.get(index) for index in range(items.size())]

    def _with_statistics(self, action: Any, statistics: Callable[[str], Mapping[str, Any]]) -> Any:
        # Through JSON, the protocol's own form of an action, rather than the thirteen arguments of
        # the class's copy method.
        add = json.loads(action.json())
        stats = statistics(unquote(add["add"]["path"]))
        add["add"]["stats"] = json.dumps(stats, separators=(",", ":"))
        return self._jvm.org.apache.spark.sql.delta.actions.Action.fromJson(json.dumps(add))


def _written(add: Mapping[str, Any]) -> WrittenFile:
    stats = json.loads(add["stats"])
    return WrittenFile(add["path"], int(add["size"]), int(stats["numRecords"]), stats)
