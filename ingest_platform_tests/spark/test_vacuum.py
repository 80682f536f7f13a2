"""Vacuum: deletes what has expired, whatever its name, and nothing else."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

from ingest_platform.adapters.table_storage import StoredFile, table_storage
from ingest_platform.drivers.vacuum_table import VacuumOptions, vacuum_table
from ingest_platform.maintain.vacuum.plan import Way
from ingest_platform.maintain.vacuum.retention import Retention
from ingest_platform.maintain.vacuum.run import Vacuum
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.lake_tables import LakeTable, table_spec

pytestmark = pytest.mark.slow

HOSTILE = ["plain", "it's", "a b", "50%", "x=y", "ü", "back\\slash", "a+b", "c:d", "_hidden"]
WEEK = timedelta(days=8)
NOW = VacuumOptions(keep=timedelta(0), override="test of the maintenance")


def no_session() -> SparkSession:
    raise AssertionError("Spark was asked for although there is nothing to do")


def stored(table: LakeTable) -> list[StoredFile]:
    found = table_storage(table.path, table.storage, per_second=100_000).files()
    return [file for file in found if not file.folder]


def write_twice(spark: SparkSession, path: str, **properties: str) -> None:
    """Write each partition, and again: the first files are removed, and lie there still."""
    rows = spark.createDataFrame(
        [(n, value) for n, value in enumerate(HOSTILE)], "id BIGINT, p STRING"
    )
    for _ in range(2):
        writer = rows.write.format("delta").mode("overwrite").partitionBy("p")
        for key, value in properties.items():
            writer = writer.option(key.replace("_", "."), value)
        writer.save(path)


@pytest.mark.parametrize("where", ["local", "s3"])
def test_removed_files_go_and_live_ones_stay_whatever_their_names(
    spark: SparkSession, s3: S3Bucket, tmp_path: Path, where: str
) -> None:
    """Names are escaped twice on their way through log, Spark and storage: a slip deletes data."""
    path = f"s3a://{s3.bucket}/lake/t" if where == "s3" else str(tmp_path / "t")
    table = LakeTable(path, s3 if where == "s3" else None)
    write_twice(spark, path)
    before, spec = table.rows(), table_spec(path)
    assert len(stored(table)) == 2 * len(HOSTILE)

    def vacuum(options: VacuumOptions) -> Any:
        return vacuum_table(spec, table.storage, lambda: spark, datetime.now(UTC), options)

    kept = vacuum(VacuumOptions(full=True))
    assert kept.numbers["files_deleted"] == 0, kept
    dry = vacuum(VacuumOptions(keep=NOW.keep, override=NOW.override, dry_run=True, full=True))
    assert dry.numbers["files_found"] == len(HOSTILE)
    assert len(stored(table)) == 2 * len(HOSTILE)

    report = vacuum(VacuumOptions(keep=NOW.keep, override=NOW.override, full=True))
    assert report.numbers["files_deleted"] == len(HOSTILE), report
    assert report.numbers["bytes_deleted"] > 0
    assert len(stored(table)) == len(HOSTILE)
    assert table.rows() == before
    start, end = table.history()[-2:]
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationMetrics"]["numFilesToDelete"] == str(len(HOSTILE))
    assert "test of the maintenance" in start["userMetadata"]
    assert end["operationMetrics"]["numDeletedFiles"] == str(len(HOSTILE))


def test_orphans_of_a_killed_writer_go_once_they_are_old(
    spark: SparkSession, tmp_path: Path
) -> None:
    """No log entry names them; a young one may be a batch that is being written right now."""
    table = LakeTable(str(tmp_path / "t"))
    table.append([1, 2], hour=["11", "12"])
    folder = tmp_path / "t" / "hour=11"
    old, young = folder / "part-old.parquet", folder / "part-young.parquet"
    hidden = tmp_path / "t" / "_state" / "offsets"
    hidden.parent.mkdir()
    for file in (old, young, hidden):
        file.write_bytes(b"x" * 100)
    for file in (old, hidden):
        os.utime(file, times=(time.time() - WEEK.total_seconds(),) * 2)
    report = vacuum_table(
        table_spec(table.path),
        table.storage,
        lambda: spark,
        datetime.now(UTC),
        VacuumOptions(full=True),
    )
    assert (report.numbers["files_deleted"], report.numbers["bytes_deleted"]) == (1, 100)
    assert (old.exists(), young.exists(), hidden.exists()) == (False, True, True)
    assert len(table.rows()) == 2


def test_between_listings_the_log_tells(spark: SparkSession, s3: S3Bucket) -> None:
    """First storage is listed; then only what commits removed is looked for, or nothing at all."""
    table = LakeTable(f"s3a://{s3.bucket}/lake/t", s3)
    write_twice(spark, table.path)
    spec, now = table_spec(table.path), datetime.now(UTC)

    def vacuum(at: datetime, session: Any = lambda: spark) -> Any:
        # A later clock for the plan; Delta itself is told to keep nothing.
        return vacuum_table(spec, table.storage, session, at, NOW)

    first = vacuum(now + timedelta(minutes=20))
    assert (first.numbers["full"], first.numbers["files_deleted"]) == (1, len(HOSTILE))
    idle = vacuum(now + timedelta(minutes=21), no_session)
    assert "nothing to vacuum" in idle.done
    table.delta().delete("id = 3")
    second = vacuum(now + timedelta(minutes=41))
    assert (second.numbers["full"], second.numbers["files_deleted"]) == (0, 1), second
    assert len(stored(table)) == len(HOSTILE) - 1
    assert len(table.rows()) == len(HOSTILE) - 1


def test_a_log_that_was_cleaned_up_is_listed_instead(spark: SparkSession, tmp_path: Path) -> None:
    """LITE needs the commits since the last vacuum; where they are gone, Delta refuses it."""
    table = LakeTable(str(tmp_path / "t"))
    for n in range(3):
        table.append([n])
    table.delta().delete("id = 0")
    table.delta().create_checkpoint()
    for version in range(2):
        (tmp_path / "t" / "_delta_log" / f"{version:020}.json").unlink()
    kept = Retention(timedelta(0), WEEK, "test of the maintenance")
    storage = table_storage(table.path, table.storage, per_second=1000)
    result = Vacuum(spark, table.path, storage, kept).run(Way.LITE)
    assert (result.way, result.files) == (Way.FULL, 1)
    assert [row["id"] for row in table.rows()] == [1, 2]


def test_deletion_vectors_of_live_files_stay(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(100, numPartitions=1).withColumn("p", F.lit(1)).write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 7")
    assert list((tmp_path / "t").rglob("deletion_vector*"))
    vacuum_table(
        table_spec(path),
        LakeTable(path).storage,
        lambda: spark,
        datetime.now(UTC),
        VacuumOptions(keep=NOW.keep, override=NOW.override, full=True),
    )
    assert list((tmp_path / "t").rglob("deletion_vector*"))
    assert spark.read.format("delta").load(path).count() == 99
