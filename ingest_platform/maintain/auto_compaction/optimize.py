"""Delta's own auto compaction, driven from a worker's thread in a session of its own.

`AutoCompact.compact` is what Delta's post-commit hook calls: the same files, sizes and commit
(`OPTIMIZE`, `auto: true`), so inline and asynchronous compaction differ in nothing but when. The
jar lock pins that class.

Delta asks the thread's active session, so the worker's session is made active on the worker's JVM
thread. That thread belongs to the Python thread only while PySpark pins threads, its default.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ingest_platform.errors import EnvironmentFault
from ingest_platform.maintain.auto_compaction.attempt import YieldedError
from ingest_platform.maintain.auto_compaction.markers import YIELD_TO
from ingest_platform.maintain.auto_compaction.outcome import Outcome, Result
from ingest_platform.maintain.auto_compaction.snapshot_files import SnapshotFiles
from ingest_platform.maintain.auto_compaction.trigger import Partition, Trigger, partitions_due
from ingest_platform.maintain.compaction.conflicts import conflict_of
from ingest_platform.spark.conf import MAINTENANCE_POOL

ENABLED: Final = "spark.databricks.delta.autoCompact.enabled"

_HOOK: Final = "org.apache.spark.sql.delta.hooks.AutoCompact$"
_OPERATION: Final = "delta.commit.hooks.autoOptimize"
_TURNED_BACK: Final = "TurnedBackException"  # of our LogStores
_BY_OPTIMIZE: Final = "a concurrent OPTIMIZE"  # Delta's message on the commit that was faster


class SparkCompactor:
    """Looks at tables with delta-rs and compacts them with Spark."""

    def __init__(
        self, spark: SparkSession, files: SnapshotFiles, markers: Callable[[str], str]
    ) -> None:
        """Bind to the driver's session, which is never changed.

        Args:
            spark: Each worker thread gets a clone of it, with its settings of now.
            files: Reads snapshots.
            markers: URI of the folder of a table's markers of DML.

        Raises:
            EnvironmentFault: PySpark does not pin threads.
        """
        if not isinstance(spark.sparkContext._gateway, ClientServer):
            raise EnvironmentFault(
                "asynchronous auto compaction needs a JVM thread for each Python thread",
                where="PYSPARK_PIN_THREAD=false in the environment",
                remedy="remove the variable, or set `table.auto_compaction: inline`",
            )
        self._spark, self._files, self._markers = spark, files, markers
        self._jvm: Any = spark._jvm
        self._thread = threading.local()
        self._trigger = Trigger.from_conf(lambda key, default: spark.conf.get(key, default) or "")

    def look(self, table: str) -> list[Partition] | None:
        """The partitions that are due by the newest snapshot; None if none is."""
        return partitions_due(self._files.read(table), self._trigger) or None

    def run(self, table: str, due: list[Partition], group: str) -> Result:
        """OPTIMIZE the partitions that are due, in one commit.

        Raises:
            YieldedError: The LogStore turned the commit back, or another commit had landed.
            Py4JJavaError, PySparkException: Anything else, a cancelled job among it.
        """
        session = self._session()
        session.conf().set(YIELD_TO, self._markers(table))
        context = self._spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", MAINTENANCE_POOL)
        context.setJobGroup(group, f"auto compaction of {table}")
        try:
            return self._compact(session, table, due)
        except (Py4JJavaError, PySparkException) as error:
            yielded = _yielded(error)
            if yielded:
                raise YieldedError(yielded) from error
            raise

    def cancel(self, group: str) -> None:
        """Cancel what runs, and whatever the group would begin later."""
        context: Any = self._spark.sparkContext._jsc
        # A JVM that ended first has taken the jobs with it.
        with suppress(Py4JError, ConnectionError):
            context.sc().cancelJobGroupAndFutureJobs(group)

    def _compact(self, session: Any, table: str, due: list[Partition]) -> Result:
        log = self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, table)
        hook = getattr(getattr(self._jvm, _HOOK), "MODULE$")  # a Scala object
        none = self._jvm.scala.Option.empty()
        where = self._predicates(session, due)
        done = hook.compact(session, log, none, where, _OPERATION, none).head()
        removed, added = int(done.numFilesRemoved()), int(done.numFilesAdded())
        return Result(Outcome.COMPLETED if removed else Outcome.IDLE, removed, added)

    def _predicates(self, session: Any, due: list[Partition]) -> Any:
        """`Seq` with one expression on partition columns; empty for a table without partitions."""
        expressions = self._jvm.java.util.ArrayList()
        text = partition_predicate(due)
        if text:
            expressions.add(session.sessionState().sqlParser().parseExpression(text))
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(expressions).toSeq()

    def _session(self) -> Any:
        """This thread's session, active on its JVM thread and on no other."""
        session = getattr(self._thread, "session", None)
        if session is None:
            original: Any = self._spark._jsparkSession
            session = self._thread.session = original.cloneSession()
            # An OPTIMIZE must never start another compaction from within.
            session.conf().set(ENABLED, "false")
            self._jvm.org.apache.spark.sql.SparkSession.setActiveSession(session)
        return session


def partition_predicate(due: list[Partition]) -> str:
    """SQL that holds in the given partitions only; empty if there is no partition column."""
    either = [
        " AND ".join(f"{_column(name)} <=> {_literal(value)}" for name, value in partition.items())
        for partition in due
        if partition
    ]
    return " OR ".join(f"({both})" for both in either)


def _column(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _literal(value: Any) -> str:
    """Spark casts a text to the column's type, so text serves for all of them."""
    if value is None:
        return "NULL"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _yielded(error: Exception) -> Outcome | None:
    """What a failure of Delta means for the attempt; None if it is no conflict."""
    kind = conflict_of(error)
    if kind == _TURNED_BACK:
        return Outcome.BEFORE_COMMIT
    if kind:
        return Outcome.OVERTAKEN if _BY_OPTIMIZE in str(error) else Outcome.CONFLICT
    return None
