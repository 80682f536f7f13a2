"""The lock file is a security boundary: what it does not say exactly is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_platform.errors import JarLockError
from ingest_platform.spark.installed import (
    InstalledSpark,
    installed_spark,
    spark_jars_dir,
    verify_against_installed,
)
from ingest_platform.spark.jar_lock import JarLock, load_lock

ENTRY = """
[[jar]]
maven = "org.example:thing:1.0"
path = "org/example/thing/1.0/thing-1.0.jar"
sha256 = "{sha}"
size = 3
set = "spark"
""".format(sha="0" * 64)


@pytest.fixture(scope="module")
def lock() -> JarLock:
    return load_lock()


@pytest.fixture(scope="module")
def installed() -> InstalledSpark:
    return installed_spark(os.environ)


def test_the_lock_fits_what_is_installed(lock: JarLock, installed: InstalledSpark) -> None:
    """The one that ships must pass its own check."""
    verify_against_installed(lock, installed)


def test_every_consumer_has_jars(lock: JarLock) -> None:
    assert len(lock.of("spark")) > 40
    assert len(lock.of("kafka")) > 40
    assert len(lock.of("s3")) == 1


@pytest.mark.parametrize(
    ("change", "both_sides"),
    [
        ({"delta_spark": "4.5.0"}, ["io.delta:delta-spark_4.2_2.13:4.4.0", "4.5.0"]),
        ({"pyspark": "4.3.0", "spark": "4.3.0"}, ["is for Spark 4.2", "pyspark is 4.3.0"]),
        ({"pyspark": "4.3.0"}, ["pyspark is 4.3.0", "Spark's own jars are 4.2.0"]),
        ({"spark": "4.1.1"}, ["spark-sql-kafka-0-10_2.13:4.2.0", "Spark is 4.1.1"]),
        ({"scala": "3"}, ["is for Scala 2.13", "Spark runs Scala 3"]),
        ({"hadoop": "3.4.2"}, ["hadoop-aws:3.5.0", "hadoop-client-api 3.4.2"]),
        ({"artifacts": {"hadoop-aws": "3.5.1"}}, ["hadoop-aws:3.5.0", "hadoop-aws 3.5.1"]),
    ],
)
def test_a_mismatch_names_both_sides(
    lock: JarLock, installed: InstalledSpark, change: dict[str, object], both_sides: list[str]
) -> None:
    """The reader must see which of the two to change without opening either file."""
    with pytest.raises(JarLockError) as caught:
        verify_against_installed(lock, replace(installed, **change))
    for side in both_sides:
        assert side in str(caught.value)
    assert "remedy: run `uv sync`" in str(caught.value)


def test_a_lock_without_delta_is_refused(lock: JarLock, installed: InstalledSpark) -> None:
    without = replace(lock, jars=tuple(j for j in lock.jars if "io.delta" not in j.maven))
    with pytest.raises(JarLockError, match="no delta-spark jar is locked"):
        verify_against_installed(without, installed)


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("jar = [", "not readable"),
        (ENTRY + ENTRY, "named twice"),
        (ENTRY.replace("0" * 64, "abc"), "64 hex digits"),
        (ENTRY.replace('"spark"', '"flink"'), "must be one of"),
        (ENTRY.replace("org/example/thing", "../../etc/thing"), "must begin with"),
        (ENTRY.replace("size = 3", ""), "size"),
    ],
)
def test_a_broken_lock_is_refused(tmp_path: Path, text: str, finding: str) -> None:
    path = tmp_path / "lock.toml"
    path.write_text(text)
    with pytest.raises(JarLockError, match=finding) as caught:
        load_lock(path)
    assert caught.value.where == str(path)


def test_spark_home_decides_which_spark_is_meant(tmp_path: Path) -> None:
    """PySpark itself prefers SPARK_HOME, so a check of the packaged jars would be no check."""
    with pytest.raises(JarLockError, match="are not there") as caught:
        spark_jars_dir({"SPARK_HOME": str(tmp_path)})
    assert str(tmp_path) in str(caught.value)
