"""Settings of a session: the user's win, except where commits could be lost."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlparse
from xml.etree import ElementTree

import pytest

from ingest_platform.errors import SpecError
from ingest_platform.spark.conf import MAINTENANCE_POOL, session_conf
from ingest_platform.spec import SparkSpec, StorageEnvironment

JARS = [Path("/jars/a.jar"), Path("/jars/b.jar")]
S3 = StorageEnvironment.from_env(
    {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hush",
    }
)


def conf(spark: SparkSpec | None = None, *, on_s3: bool = True) -> dict[str, str]:
    return session_conf(spark or SparkSpec(), S3, JARS, on_s3=on_s3)


def test_every_session_has_the_safe_log_stores() -> None:
    """Delta's defaults lose commits, on S3 and on local paths."""
    for found in (conf(), conf(on_s3=False)):
        assert found["spark.delta.logStore.s3a.impl"] == "ingest.platform.ConditionalPutLogStore"
        assert found["spark.delta.logStore.file.impl"] == "ingest.platform.LinkLogStore"


@pytest.mark.parametrize(
    "setting",
    [
        {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"},
        {"spark.delta.logStore.class": "x.Y"},
        {"spark.hadoop.fs.s3a.create.performance": "true"},
        {"spark.hadoop.fs.s3a.bucket.lake.create.performance": "true"},
        {"spark.hadoop.fs.s3a.performance.flags": "open, create"},
        {"fs.s3a.bucket.lake.performance.flags": "*"},
        {"spark.hadoop.fs.s3a.create.conditional.enabled": "false"},
    ],
)
def test_unsafe_settings_are_refused(setting: dict[str, str]) -> None:
    """A user's setting may not quietly bring back the loss of commits."""
    with pytest.raises(SpecError, match="lose each other's commits"):
        conf(SparkSpec(conf=setting))


def test_settings_that_only_look_unsafe_are_the_users() -> None:
    """Other flags of S3A do not touch commits."""
    setting = {"spark.hadoop.fs.s3a.performance.flags": "delete,mkdir"}
    assert conf(SparkSpec(conf=setting)).items() >= setting.items()


@pytest.mark.parametrize(
    ("master", "key", "separator"),
    [
        ("local[2]", "spark.driver.extraClassPath", ":"),
        ("spark://host:7077", "spark.jars", ","),
    ],
)
def test_the_users_jars_come_behind_the_locked_ones(master: str, key: str, separator: str) -> None:
    """In their place, they would take Delta, the Kafka source and the safe LogStore away."""
    found = conf(SparkSpec(master=master, conf={key: "/x/mine.jar"}))
    assert found[key] == separator.join(["/jars/a.jar", "/jars/b.jar", "/x/mine.jar"])


def test_the_users_settings_win() -> None:
    """A Spark user expects a setting by Spark's name to count."""
    found = conf(SparkSpec(conf={"spark.databricks.delta.snapshotPartitions": "50"}))
    assert found["spark.databricks.delta.snapshotPartitions"] == "50"


def test_batches_come_before_what_runs_beside_them() -> None:
    """A pool that the file does not name would share the cores with the batches evenly."""
    file = conf()["spark.scheduler.allocation.file"]
    pools = ElementTree.parse(Path(urlparse(file).path)).findall("pool")
    shares = {pool.attrib["name"]: int(pool.findtext("minShare") or 0) for pool in pools}
    assert shares[MAINTENANCE_POOL] == 0
    assert shares["default"] >= 1024


def test_credentials_only_where_s3_is_used() -> None:
    """What is not there cannot leak."""
    assert conf()["spark.hadoop.fs.s3a.secret.key"] == "hush"
    assert "hush" not in str(conf(on_s3=False))


def test_local_drivers_use_the_class_path_and_clusters_ship_the_jars() -> None:
    """Executors elsewhere have no class path of ours; the class archive needs the JVM's own."""
    assert conf()["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    cluster = conf(SparkSpec(master="spark://host:7077"))
    assert cluster["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert cluster["spark.dynamicAllocation.enabled"] == "true"
