"""Deletes the files that no version within the retention needs.

Delta decides which they are: it knows tombstones, deletion vectors and change data. It is given a
listing instead of making one, since its own takes 10,000 tasks and a request for each folder. And
the files are deleted here, 1,000 in a request and no faster than allowed, since its own way takes
several requests for each file.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from ingest_platform.adapters.table_storage import StoredFile, TableStorage
from ingest_platform.errors import DataProblem
from ingest_platform.maintain.vacuum.log import VacuumLog
from ingest_platform.maintain.vacuum.plan import Way
from ingest_platform.maintain.vacuum.retention import Retention

log = logging.getLogger(__name__)

_VIEW: Final = "ingest_vacuum_inventory"
_FROM_INVENTORY: Final = "FULL USING INVENTORY (TABLE ingest_vacuum_inventory)"
_CANNOT_LITE: Final = "DELTA_CANNOT_VACUUM_LITE"
# A fresh JVM spends longer on compiling code for these few thousand rows than on the rows.
_SMALL_QUERY: Final = {"spark.sql.codegen.wholeStage": "false"}
_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"
_IGNORE: Final = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"


@dataclass(frozen=True)
class VacuumResult:
    """What was deleted, or would be.

    Attributes:
        way: How the files were found.
        files: Files (and empty folders) that were deleted; on a dry run, that would be.
        bytes: Their sum.
        listed: Files that storage listed; 0 for LITE.
        seconds: Duration.
    """

    way: Way
    files: int = 0
    bytes: int = 0
    listed: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Vacuum:
    """Vacuums one table.

    Attributes:
        spark: A session of the platform.
        path: The table.
        storage: The same table's files.
        kept: What to keep.
    """

    spark: SparkSession
    path: str
    storage: TableStorage
    kept: Retention

    def run(self, way: Way, *, expired: int | None = None, dry_run: bool = False) -> VacuumResult:
        """Find the files, and delete them unless it is a dry run.

        A kill leaves some of them, and a history with a start and no end; the next run finds them
        again. Nothing is committed if there is nothing to delete.

        Args:
            way: FULL is taken instead of LITE where the log no longer reaches back.
            expired: The newest version whose removed files have all expired: where the next LITE
                vacuum may begin.
            dry_run: Only find them.
        """
        started = time.monotonic()
        way, paths, sizes = self._deletable(way)
        total = sum(sizes.get(path, 0) for path in paths)
        if self.kept.overridden:
            log.warning("%s: retention %s by override: %s", self.path, *self._override())
        if not dry_run:
            self._delete(paths, total, way)
            if expired is not None:
                VacuumLog(self.spark, self.path).remember(expired)
        listed = len(sizes) if way is Way.FULL else 0
        return VacuumResult(way, len(paths), total, listed, time.monotonic() - started)

    def _deletable(self, way: Way) -> tuple[Way, Sequence[str], Mapping[str, int]]:
        if way is Way.LITE:
            try:
                paths = self._candidates("LITE")
                return way, paths, self.storage.sizes(paths)
            except Exception as error:
                if _CANNOT_LITE not in str(error):
                    raise
                log.info("%s: the log does not reach back far enough, listing instead", self.path)
        begun = time.monotonic()
        # Both take seconds, one of the network, the other of Spark. What is deleted is decided by
        # the query below, on the newest version after the listing.
        with ThreadPoolExecutor(1, thread_name_prefix="vacuum") as beside:
            loaded = beside.submit(lambda: VacuumLog(self.spark, self.path).load())
            listing = list(self.storage.files())
            listed = time.monotonic()
            loaded.result()
        with self._inventory(listing):
            paths = self._candidates(_FROM_INVENTORY)
        found = time.monotonic() - listed
        log.info(
            "%s: listed %d files in %.1f s, found %d to delete in %.1f s",
            *(self.path, len(listing), listed - begun, len(paths), found),
        )
        return Way.FULL, paths, {file.path: file.bytes for file in listing}

    def _candidates(self, how: str) -> Sequence[str]:
        """What Delta would delete; full paths."""
        hours = self.kept.hours
        retain = "" if hours is None else f" RETAIN {hours} HOURS"
        with self._settings():
            rows = self.spark.sql(f"VACUUM delta.`{self.path}` {how}{retain} DRY RUN").collect()
        paths = [str(row["path"]) for row in rows]
        self._refuse_foreign(paths)
        return paths

    def _delete(self, paths: Sequence[str], total: int, way: Way) -> None:
        if not paths:
            return
        history = VacuumLog(self.spark, self.path)
        history.started(len(paths), total, self.kept, way.value)
        begun = time.monotonic()
        try:
            deleted = self.storage.remove(paths)
        except BaseException:
            with suppress(Exception):  # whatever stopped the deletion may stop the commit too
                history.ended(None)
            raise
        history.ended(deleted)
        log.info("%s: deleted %d files in %.1f s", self.path, deleted, time.monotonic() - begun)

    def _refuse_foreign(self, paths: Sequence[str]) -> None:
        """The last line of defence: nothing outside of the table, and never its log."""
        root = self.path if "://" in self.path else f"file:{self.path}"
        for path in paths:
            below = path.removeprefix(f"{root}/")
            if below == path or below.startswith("_delta_log") or ".." in below.split("/"):
                raise DataProblem(
                    f"vacuum was about to delete {path}, which is no data file of the table",
                    where=self.path,
                    remedy="nothing was deleted; please report this with the table's log",
                )

    @contextmanager
    def _inventory(self, listing: Sequence[StoredFile]) -> Iterator[None]:
        table = pa.table(
            {
                "path": pa.array([file.path for file in listing], pa.string()),
                "length": pa.array([file.bytes for file in listing], pa.int64()),
                "isDir": pa.array([file.folder for file in listing], pa.bool_()),
                "modificationTime": pa.array([file.modified_ms for file in listing], pa.int64()),
            }
        )
        self.spark.createDataFrame(table).createOrReplaceTempView(_VIEW)
        try:
            yield
        finally:
            self.spark.catalog.dropTempView(_VIEW)

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Let Delta take `RETAIN` at its word, and no less than it promised unless overridden."""
        settings = dict(_SMALL_QUERY)
        if self.kept.hours is not None:
            settings[_IGNORE] = "false"
        if self.kept.overridden:
            settings[_CHECK] = "false"
        before = {key: self.spark.conf.get(key, None) for key in settings}
        for key, value in settings.items():
            self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, value)

    def _override(self) -> tuple[str, str]:
        return str(self.kept.keep), self.kept.overridden or ""
