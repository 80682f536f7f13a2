"""What a vacuum writes into a table's log: its start and end, and how far it has come.

The commits are those of Delta's own `VacuumCommand`, so the table's history reads the same whoever
vacuumed. They have no actions: no other writer conflicts with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from pyspark.sql import SparkSession

from ingest_platform.maintain.vacuum.retention import Retention

_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"


class VacuumLog:
    """The log of one table."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._delta: Any = self._jvm.org.apache.spark.sql.delta
        self._log: Any = self._delta.DeltaLog.forTable(spark._jsparkSession, path)

    def load(self) -> None:
        """Have Spark read the log: a vacuum that follows finds it in memory."""
        none = self._option(None)
        self._log.update(False, none, none).stateDS().count()

    def started(self, files: int, size: int, kept: Retention, mode: str) -> int:
        """Commit `VACUUM START`; returns its version.

        Whoever overrode a safe retention, and why, is in the commit's user metadata.
        """
        specified = None if kept.hours is None else _ms(kept.keep)
        operation = self._delta.DeltaOperations.VacuumStart(
            kept.overridden is None, self._option(specified), _ms(kept.promised)
        )
        note = {"vacuum": {"type": mode, "kept_hours": kept.keep / timedelta(hours=1)}}
        if kept.overridden:
            note["vacuum"]["unsafe_retention"] = kept.overridden
        metrics = {"numFilesToDelete": files, "sizeOfDataToDelete": size}
        return self._commit(operation, metrics, json.dumps(note))

    def ended(self, deleted: int | None, folders: int = 0) -> int:
        """Commit `VACUUM END`, as failed if `deleted` is None; returns its version."""
        status = "FAILED" if deleted is None else "COMPLETED"
        metrics = (
            {}
            if deleted is None
            else {
                "numDeletedFiles": deleted,
                "numVacuumedDirectories": folders,
            }
        )
        return self._commit(self._delta.DeltaOperations.VacuumEnd(status), metrics)

    def remember(self, version: int) -> None:
        """Let the next LITE vacuum begin after this version."""
        commands = self._delta.commands
        info = commands.LastVacuumInfo(self._option(version))
        commands.LastVacuumInfo.persistLastVacuumInfo(info, self._log)

    def _commit(self, operation: Any, metrics: Mapping[str, int], note: str | None = None) -> int:
        txn = self._log.startTransaction()
        txn.registerSQLMetrics(self._spark._jsparkSession, self._metrics(metrics))
        nothing = self._scala(self._jvm.java.util.ArrayList()).toSeq()
        if note is None:
            return int(txn.commit(nothing, operation))
        self._spark.conf.set(_METADATA, note)
        try:
            return int(txn.commit(nothing, operation))
        finally:
            self._spark.conf.unset(_METADATA)

    def _metrics(self, values: Mapping[str, int]) -> Any:
        java_context: Any = self._spark.sparkContext._jsc
        made = self._jvm.java.util.HashMap()
        for name, value in values.items():
            metric = self._jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(
                java_context.sc(), name
            )
            metric.set(value)
            made.put(name, metric)
        return getattr(self._jvm.scala.collection.immutable.Map, "from")(self._scala(made))

    def _scala(self, java: Any) -> Any:
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(java)

    def _option(self, value: int | None) -> Any:
        """`Option[Long]`; from a stream, since Py4J would make an Integer of a small number."""
        jvm = self._jvm
        if value is None:
            return jvm.scala.Option.empty()
        boxed = jvm.java.util.stream.LongStream.rangeClosed(value, value).boxed().findFirst()
        return jvm.scala.jdk.javaapi.OptionConverters.toScala(boxed)


def _ms(value: timedelta) -> int:
    return int(value / timedelta(milliseconds=1))
