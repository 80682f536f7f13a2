"""Spark settings of every session that the platform makes: pure, from spec to a dictionary.

The user's own `spark.conf` comes last and wins, except for what commit safety needs.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ingest_platform.errors import SpecError
from ingest_platform.spark.logstore.compile import (
    FUNCTION_CATALOG_CLASS,
    LOCAL_CONTEXT_CLASS,
    LOCAL_FILES_CLASS,
    LOCAL_LOGSTORE_CLASS,
    LOGSTORE_CLASS,
)
from ingest_platform.spec import SparkSpec, StorageEnvironment

# Settings that decide whether two drivers can lose each other's commits.
SAFETY: Final[Mapping[str, str]] = {
    "spark.delta.logStore.s3a.impl": LOGSTORE_CLASS,
    "spark.delta.logStore.s3.impl": LOGSTORE_CLASS,
    "spark.delta.logStore.file.impl": LOCAL_LOGSTORE_CLASS,
    # With performance mode S3A skips the checks that a conditional create relies on.
    "spark.hadoop.fs.s3a.create.performance": "false",
}

# The same by other names: S3A takes options per bucket, and several at once as flags.
_PERFORMANCE: Final = re.compile(
    r"(?:spark\.hadoop\.)?fs\.s3a\.(?:bucket\..+\.)?(create\.performance|performance\.flags)"
)
# Without conditional creation the LogStore refuses to commit at all.
_CONDITIONAL: Final = re.compile(
    r"(?:spark\.hadoop\.)?fs\.s3a\.(?:bucket\..+\.)?create\.conditional\.enabled"
)

# Class paths: the user's jars come behind the locked ones, they do not replace them.
_ADDED: Final = {"spark.driver.extraClassPath": os.pathsep, "spark.jars": ","}

# Scheduler pool of jobs that batches must not wait for.
MAINTENANCE_POOL: Final = "maintenance"

DELTA: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # The default of 50 makes 50 tiny tasks out of reading a log of a few thousand files; 150,
    # as is often advised, is for millions. One task handles some 100,000 files in a second.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.checkpoint.partSize": "1000000",
    # Else a compaction that leaves at most 50 files lets the next batch replay the log with a Spark
    # job, only to list those files in its version checksum.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    # The same if the winner of a conflict has committed, but not yet written its checksum.
    "spark.ingest.commit.checksumWaitMillis": "1000",
    # A table with CLUSTER BY is clustered cube by cube, and Delta goes on with a cube until it has
    # 100 GB: auto compaction would write all of the table anew every few batches. So a cube is done
    # when auto compaction would leave a file of that size alone.
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold": str(64 << 20),
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize": str(
        128 << 20
    ),
    # VACUUM becomes visible in the history; safe, since every log writer here is conditional.
    "spark.databricks.delta.vacuum.logging.enabled": "true",
    "spark.databricks.delta.vacuum.parallelDelete.enabled": "true",
    # On local paths Delta holds a lock of the JVM around each commit, and a batch would wait for a
    # compaction's. Our LogStores decide which commit is first, on any path.
    "spark.databricks.delta.commitLock.enabled": "false",
}

LONG_LIVED: Final[Mapping[str, str]] = {
    # A driver lives for a day; what its UI remembers of each batch is the heap that grows.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "2000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.streaming.ui.retainedQueries": "5",
    "spark.sql.streaming.ui.retainedProgressUpdates": "50",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.stopActiveRunOnRestart": "false",
    "spark.sql.streaming.minBatchesToRetain": "100",
    # What was fetched from Kafka and not asked for is kept for the next reader at the same offset.
    # The quarantine's second pass leaves such rests with each batch, and nobody comes for them.
    "spark.kafka.consumer.fetchedData.cache.timeout": "10s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
}

SPEED: Final[Mapping[str, str]] = {
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": (Path(__file__).parent / "fairscheduler.xml").as_uri(),
    "spark.sql.session.timeZone": "UTC",
    # To note for each call of PySpark's API from which line it came takes more calls to the JVM
    # than the call itself.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.catalog.ingest": FUNCTION_CATALOG_CLASS,
    # Without Hadoop's native library each file costs processes: chmod, readlink.
    "spark.hadoop.fs.file.impl": LOCAL_FILES_CLASS,
    "spark.hadoop.fs.AbstractFileSystem.file.impl": LOCAL_CONTEXT_CLASS,
    # A record that holds a field twice must not fail its batch, again and again; in Spark's JSON
    # the last one wins too.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # INT96, the default, has no statistics in Parquet footers and is deprecated.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A micro-batch has one narrow stage: re-planning it adaptively only costs time.
    "spark.sql.adaptive.enabled": "false",
    # Writing several partitions at once needs no sort while this many files are open.
    "spark.sql.maxConcurrentOutputFileWriters": "24",
    "spark.sql.files.maxPartitionBytes": "256m",
}

S3A: Final[Mapping[str, str]] = {
    "spark.hadoop.fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    # Upload from memory: a small file does not need a detour over the disk.
    "spark.hadoop.fs.s3a.fast.upload.buffer": "bytebuffer",
    "spark.hadoop.fs.s3a.multipart.size": "64M",
    "spark.hadoop.fs.s3a.connection.maximum": "96",
    "spark.hadoop.fs.s3a.threads.max": "32",
    "spark.hadoop.fs.s3a.experimental.input.fadvise": "random",
    "spark.hadoop.fs.s3a.attempts.maximum": "10",
    "spark.hadoop.fs.s3a.connection.timeout": "30s",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "5s",
}

# For queries whose checkpoint is on S3, wherever their table is; no other file system can do it. A
# file is committed by an upload that is completed or aborted, never by a rename, which on S3 is a
# copy and not atomic.
S3_CHECKPOINTS: Final[Mapping[str, str]] = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    ),
}

_REDACTION: Final = "(?i)secret|password|token|access[.]key|sasl|jaas|credential"


def session_conf(
    spark: SparkSpec,
    storage: StorageEnvironment,
    jars: Iterable[Path],
    *,
    on_s3: bool,
) -> dict[str, str]:
    """Every setting of a session. It holds secrets when `on_s3`: never log it.

    Args:
        spark: The spec's part on Spark.
        storage: Endpoint and credentials.
        jars: The class path that the jar lock gives.
        on_s3: Whether table or state lie on S3.

    Raises:
        SpecError: The user's settings would make commits unsafe.
    """
    conf = {**DELTA, **LONG_LIVED, **SPEED, **SAFETY}
    conf["spark.master"] = spark.master
    conf |= _class_path(spark, [str(jar) for jar in jars])
    conf["spark.redaction.regex"] = _REDACTION
    conf["spark.sql.redaction.options.regex"] = _REDACTION
    # Nothing is ever put there, but Spark makes the folder, in the working directory by default.
    conf["spark.sql.warehouse.dir"] = str(Path(tempfile.gettempdir()) / "ingest-spark-warehouse")
    conf |= _resources(spark)
    if on_s3:
        conf |= S3A | _s3_credentials(storage)
    refuse_unsafe(spark.conf)
    added = {
        key: f"{conf[key]}{by}{spark.conf[key]}"
        for key, by in _ADDED.items()
        if key in conf and key in spark.conf
    }
    return conf | spark.conf | added


def _class_path(spark: SparkSpec, jars: list[str]) -> dict[str, str]:
    if spark.master.startswith("local"):
        # On the JVM's own class path the classes can come from the archive (`class_archive`), and
        # nothing is copied into a session folder at each start.
        return {"spark.driver.extraClassPath": os.pathsep.join(jars)}
    return {"spark.jars": ",".join(jars)}


def _resources(spark: SparkSpec) -> dict[str, str]:
    conf = {"spark.driver.memory": spark.driver_memory, "spark.driver.maxResultSize": "0"}
    if spark.master.startswith("local"):
        return conf | {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    return conf | {
        "spark.executor.memory": spark.executor_memory,
        "spark.executor.cores": str(spark.executor_cores),
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": str(spark.executors),
        "spark.sql.shuffle.partitions": str(spark.executors * spark.executor_cores),
    }


def _s3_credentials(storage: StorageEnvironment) -> dict[str, str]:
    prefix = "spark.hadoop.fs.s3a."
    conf = {
        f"{prefix}endpoint.region": storage.region,
        f"{prefix}path.style.access": str(storage.path_style).lower(),
    }
    if storage.endpoint_url:
        conf[f"{prefix}endpoint"] = storage.endpoint_url
        secure = storage.endpoint_url.startswith("https://")
        conf[f"{prefix}connection.ssl.enabled"] = str(secure).lower()
    if storage.access_key_id and storage.secret_access_key:
        kind = "TemporaryAWS" if storage.session_token else "SimpleAWS"
        conf[f"{prefix}access.key"] = storage.access_key_id
        conf[f"{prefix}secret.key"] = storage.secret_access_key.get_secret_value()
        conf[f"{prefix}aws.credentials.provider"] = (
            f"org.apache.hadoop.fs.s3a.{kind}CredentialsProvider"
        )
    if storage.session_token:
        conf[f"{prefix}session.token"] = storage.session_token.get_secret_value()
    return conf


def refuse_unsafe(user: Mapping[str, str], where: str = "spark.conf") -> None:
    """Refuse settings that would let two drivers lose each other's commits.

    Args:
        user: Settings by their names, with or without `spark.hadoop.`.
        where: What set them, for the message.

    Raises:
        SpecError: Naming the first of them.
    """
    for key, value in user.items():
        changes_safety = SAFETY.get(key, value) != value
        log_store = "logstore" in key.lower() and SAFETY.get(key) != value
        if changes_safety or log_store or _by_another_name(key, value.strip().lower()):
            raise SpecError(
                f"{key}={value} would let two drivers lose each other's commits",
                where=where,
                remedy=f"remove it; the platform sets {SAFETY.get(key, 'what is needed')} itself",
            )


def _by_another_name(key: str, value: str) -> bool:
    if _CONDITIONAL.fullmatch(key):
        return value == "false"
    performance = _PERFORMANCE.fullmatch(key)
    if performance is None:
        return False
    if performance[1] == "create.performance":
        return value != "false"
    return bool({"create", "*"} & set(re.split(r"[,\s]+", value)))
