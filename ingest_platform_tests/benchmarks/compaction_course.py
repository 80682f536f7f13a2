"""One round of one way to compact: sequential writes of small files, then queries."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal

import psutil
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.maintain.auto_compaction.fallback import FallbackPolicy
from ingest_platform.maintain.auto_compaction.optimize import ENABLED
from ingest_platform.maintain.auto_compaction.stream_compaction import open_service
from ingest_platform.spec import StorageEnvironment
from ingest_platform.stream.table import PROPERTIES

Way = Literal["inline", "async"]
WAYS: Final[tuple[Way, Way]] = ("inline", "async")

_MIN_FILES: Final = "spark.databricks.delta.autoCompact.minNumFiles"
_IDLE_SECONDS: Final = 120.0

QUERIES: Final = {
    "aggregate": "SELECT k, count(*), sum(v) FROM {table} GROUP BY k",
    "filter": "SELECT count(*) FROM {table} WHERE v < 1000",
    "point": "SELECT * FROM {table} WHERE id = 42",
}


@dataclass(frozen=True)
class Course:
    """What one round gave.

    Attributes:
        way: Which compaction.
        seconds: Of each write.
        drain: Seconds from the last write's end until no compaction waits or runs.
        cpu: Seconds of the process and its JVM, from the first write to the end of the drain.
        optimizes: OPTIMIZE commits among the measured writes' and after.
        files: Of the final table.
        queries: Median seconds by query.
        report: The service's counts; empty for inline.
    """

    way: Way
    seconds: list[float]
    drain: float
    cpu: float
    optimizes: int
    files: int
    queries: dict[str, float]
    report: dict[str, Any] = field(default_factory=dict)


def _cpu_seconds() -> float:
    process = psutil.Process()
    times = [p.cpu_times() for p in (process, *process.children(recursive=True))]
    return sum(t.user + t.system for t in times)


class Writer:
    """Writes to new tables of one folder, in one session."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        *,
        files: int,
        rows: int,
        min_files: int,
        queries: int,
    ) -> None:
        self._spark, self._folder = spark, folder
        self._files, self._rows, self._queries = files, rows, queries
        spark.conf.set(_MIN_FILES, str(min_files))

    def run(self, way: Way, writes: int) -> Course:
        """One round on a table of its own."""
        folder = self._folder / uuid.uuid4().hex
        table = str(folder / "t")
        self._create(table)
        self._spark.conf.set(ENABLED, str(way == "inline").lower())
        if way == "inline":
            self._write(table)
            cpu = _cpu_seconds()
            seconds = [self._timed(table) for _ in range(writes)]
            return self._course(way, table, seconds, 0.0, _cpu_seconds() - cpu)
        with self._service(folder) as (committed, drained, report):
            self._write(table)
            committed(table)
            drained()
            cpu = _cpu_seconds()
            seconds = [self._timed(table, committed) for _ in range(writes)]
            drain = drained()
            spent = _cpu_seconds() - cpu
            return self._course(way, table, seconds, drain, spent, report(table))

    @contextmanager
    def _service(self, folder: Path) -> Iterator[tuple[Callable, Callable, Callable]]:
        service = open_service(
            self._spark,
            StorageEnvironment(),
            LocalObjects(folder / "_ingest"),
            policy=FallbackPolicy(),
        )

        def drained() -> float:
            started = time.perf_counter()
            if not service.wait_until_idle(_IDLE_SECONDS):
                raise RuntimeError(f"compaction was not idle after {_IDLE_SECONDS:.0f} s")
            return time.perf_counter() - started

        try:
            yield service.committed, drained, lambda table: asdict(service.report(table))
        finally:
            service.close(10.0)

    def _create(self, table: str) -> None:
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
        self._spark.sql(
            f"CREATE TABLE delta.`{table}` (id BIGINT, k BIGINT, v DOUBLE, s STRING) USING delta "
            f"TBLPROPERTIES ({properties})"
        )

    def _write(self, table: str) -> None:
        # The same rows each time: a literal that changes would have Spark compile each write anew.
        rows = self._spark.range(0, self._rows, 1, self._files).selectExpr(
            "id",
            "id % 17 AS k",
            "CAST(id * 7919 % 100003 AS DOUBLE) AS v",
            "sha2(CAST(id AS STRING), 256) AS s",
        )
        rows.write.format("delta").mode("append").save(table)

    def _timed(self, table: str, committed: Callable[[str], Any] = lambda _: None) -> float:
        started = time.perf_counter()
        self._write(table)
        committed(table)
        return time.perf_counter() - started

    def _course(
        self,
        way: Way,
        table: str,
        seconds: list[float],
        drain: float,
        cpu: float,
        report: dict[str, Any] | None = None,
    ) -> Course:
        delta = DeltaTable(table)
        expected = (len(seconds) + 1) * self._rows
        found = self._spark.read.format("delta").load(table).count()
        if found != expected:
            raise RuntimeError(f"{way}: {found} rows instead of {expected}")
        return Course(
            way=way,
            seconds=seconds,
            drain=drain,
            cpu=cpu,
            optimizes=sum(h["operation"] == "OPTIMIZE" for h in delta.history()),
            files=len(delta.file_uris()),
            queries={name: self._query(sql, table) for name, sql in QUERIES.items()},
            report=report or {},
        )

    def _query(self, sql: str, table: str) -> float:
        taken = []
        for _ in range(self._queries):
            started = time.perf_counter()
            self._spark.sql(sql.format(table=f"delta.`{table}`")).collect()
            taken.append(time.perf_counter() - started)
        return median(taken)
