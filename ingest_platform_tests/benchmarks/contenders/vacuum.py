"""One vacuum in a process of its own: plain `VACUUM` with defaults, or the platform's.

    python -m ingest_platform_tests.benchmarks.contenders.vacuum plain|platform TABLE EVENTS OUT

Spark is started before the clock is. Writes seconds and S3 requests as JSON to OUT; tasks are in
Spark's event log in the folder EVENTS.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ingest_platform.adapters.s3_objects import s3_client
from ingest_platform.drivers.vacuum_table import JVM_OPTIONS, VacuumOptions, vacuum_table
from ingest_platform.spark.classpath import classpath
from ingest_platform.spark.conf import S3A, _s3_credentials
from ingest_platform.spark.java import find_java
from ingest_platform.spark.session import open_session
from ingest_platform.spec import SparkSpec, StorageEnvironment, StreamSpec

MASTER = "local[2]"


def main() -> None:
    """Vacuum once."""
    logging.basicConfig(level=logging.INFO)
    how, table, events, out = sys.argv[1:5]
    Path(events).mkdir(parents=True, exist_ok=True)
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{events}"}
    log |= {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
    found = plain(table, log) if how == "plain" else platform(table, log)
    Path(out).write_text(json.dumps(found))


def plain(table: str, log: dict[str, str]) -> dict[str, Any]:
    """The SQL command in a session with the defaults of Spark and Delta."""
    storage = StorageEnvironment.from_env(os.environ)
    java = find_java(os.environ)
    os.environ["JAVA_HOME"] = str(java.home)
    builder = SparkSession.builder.appName("plain").master(MASTER)
    conf = {
        "spark.driver.extraClassPath": os.pathsep.join(map(str, classpath(os.environ, java=java))),
        "spark.driver.memory": "2g",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.showConsoleProgress": "false",
        "spark.hadoop.fs.s3a.impl": S3A["spark.hadoop.fs.s3a.impl"],
        **_s3_credentials(storage),
        **log,
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    started = time.monotonic()
    spark.sql(f"VACUUM delta.`{table}`").collect()
    seconds = time.monotonic() - started
    requests = jvm_requests(spark, table)
    spark.stop()
    return {"seconds": seconds, **requests}


def platform(table: str, log: dict[str, str]) -> dict[str, Any]:
    """What the maintenance driver does for one table, with the session at hand."""
    storage = StorageEnvironment.from_env(os.environ)
    spec = StreamSpec.model_validate(
        {
            # When a stream's table was last vacuumed is noted under the stream's name.
            "name": table.rpartition("/")[2],
            "source": {"topic": "none"},
            "decode": {"schema": "id BIGINT"},
            "table": {"path": table},
        }
    )
    own = Requests()
    for timeout in (5, 60):
        client = s3_client(storage) if timeout == 5 else s3_client(storage, read_timeout=60.0)
        client.meta.events.register("before-send.s3", own.count)
    spark_spec = SparkSpec(master=MASTER, driver_memory="2g", conf=log)
    with open_session(
        spark_spec,
        storage,
        app_name="platform",
        environ=os.environ,
        on_s3=True,
        jvm_options=JVM_OPTIONS,
    ) as spark:
        started = time.monotonic()
        report = vacuum_table(spec, storage, lambda: spark, datetime.now(UTC), VacuumOptions())
        seconds = time.monotonic() - started
        requests = jvm_requests(spark, table)
    return {
        "seconds": seconds,
        "requests": requests["requests"] + own.sent,
        "listings": requests["listings"] + own.listings,
        "counters": requests["counters"],
        "done": report.done,
    }


class Requests:
    """Counts what boto3 sends; delta-rs's handful of requests for the log is not seen."""

    def __init__(self) -> None:
        self.sent = 0
        self.listings = 0

    def count(self, request: Any, **_: Any) -> None:
        """Called before each."""
        self.sent += 1
        self.listings += "list-type=2" in str(request.url)


def jvm_requests(spark: SparkSession, table: str) -> dict[str, Any]:
    """What S3A has sent since the session began: all of a JVM share one file system per bucket."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc
    uri = jvm.java.net.URI.create(table)
    s3a = jvm.org.apache.hadoop.fs.FileSystem.get(uri, context.hadoopConfiguration())
    counts = dict(s3a.getIOStatistics().counters())
    return {
        "requests": int(counts.get("store_io_request") or 0),
        "listings": int(counts.get("object_list_request") or 0)
        + int(counts.get("object_continue_list_request") or 0),
        "counters": {k: int(v) for k, v in counts.items() if v and "request" in k},
    }


if __name__ == "__main__":
    main()
