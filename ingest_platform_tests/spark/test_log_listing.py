"""Listing a log from a version on: what a full listing would show, without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ingest_platform.spark.logstore.compile import LOCAL_LOGSTORE_CLASS, LOGSTORE_CLASS
from ingest_platform_tests.conftest import S3Bucket

VERSIONS = 12


class Log:
    """A log with all that Delta puts there, seen through the LogStore of its file system."""

    def __init__(self, spark: SparkSession, table: str, store: str) -> None:
        self.spark, self.table = spark, table
        self.jvm: Any = spark._jvm
        java_context: Any = spark.sparkContext._jsc
        self.conf = java_context.hadoopConfiguration()
        self.store = getattr(self.jvm.ingest.platform, store.rpartition(".")[2])(self.conf)
        for version in range(VERSIONS):
            rows = spark.range(version, version + 1, numPartitions=1)
            rows.write.format("delta").mode("append").save(table)
        # A folder that sorts behind the commits, with a commit's name in it: a staged one, say.
        self.write(f"_delta_log/_staged/{5:020}.json")

    def path(self, name: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.table}/{name}")

    def write(self, name: str) -> None:
        path = self.path(name)
        path.getFileSystem(self.conf).create(path).close()

    def listed(self, name: str) -> list[str]:
        found = self.store.listFrom(self.path(name), self.conf)
        return [self._name(found.next()) for _ in iter(found.hasNext, False)]

    def all_from(self, name: str) -> list[str]:
        """Hadoop's own listing of the whole folder."""
        path = self.path(name)
        statuses = path.getFileSystem(self.conf).listStatus(path.getParent())
        return sorted(n for n in map(self._name, statuses) if n >= path.getName())

    @staticmethod
    def _name(status: Any) -> str:
        return str(status.getPath().getName())


@pytest.fixture(params=["s3", "local"])
def log(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Log:
    if request.param == "local":
        return Log(spark, (tmp_path / "t").as_uri(), LOCAL_LOGSTORE_CLASS)
    bucket: S3Bucket = request.getfixturevalue("s3")
    return Log(spark, f"s3a://{bucket.bucket}/t", LOGSTORE_CLASS)


def test_listing_begins_at_a_version(log: Log) -> None:
    for version in (0, 7, VERSIONS - 1, VERSIONS):
        name = f"_delta_log/{version:020}.json"
        found = [n for n in log.listed(name) if not n.startswith("_")]
        assert found == [n for n in log.all_from(name) if not n.startswith("_")]
        assert f"{VERSIONS - 1:020}.json" in found or version == VERSIONS
    assert log.spark.read.format("delta").load(log.table).count() == VERSIONS


def test_data_is_listed_whole_with_its_folders(log: Log) -> None:
    """VACUUM asks the LogStore for that."""
    log.write("part=1/file.parquet")
    name = "\0"
    assert log.listed(name) == log.all_from(name)
    assert "part=1" in log.listed(name)


def test_missing_log_is_an_error(log: Log) -> None:
    log.table += "-none"
    with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
        log.listed(f"_delta_log/{0:020}.json")
