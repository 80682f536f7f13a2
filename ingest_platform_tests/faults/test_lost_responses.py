"""Commits whose response is lost on the way, as stream and compaction meet them (fault 6)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingest_platform.drivers.compact_table import compact_table
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.fault_proxy import FaultProxy
from ingest_platform_tests.lake_tables import LakeTable
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long]

BATCHES = 3
VERSIONS = BATCHES + 2  # the table is made, and compacted


def test_no_response_to_any_commit_doubles_a_batch_or_looks_like_a_conflict(
    spark: SparkSession,
    kafka: KafkaServer,
    topic: Callable[..., str],
    deploy: Callable[..., DeployedStream],
    s3: S3Bucket,
) -> None:
    """The SDK's second request finds the commit there: it is this driver's own."""
    name = topic(2)
    rules = {"compaction": {"settle": "0s", "min_files": 1}}
    stream = deploy(name, "id BIGINT", s3=s3, maintenance=rules)
    path = stream.spec.table.path
    places = []
    with FaultProxy(s3.endpoint) as proxy:
        java_context: Any = spark.sparkContext._jsc
        hadoop = java_context.hadoopConfiguration()
        hadoop.set(f"fs.s3a.bucket.{s3.bucket}.endpoint", proxy.endpoint)
        log = r"lake/stream/_delta_log"
        lost = [
            proxy.drop_response(method="PUT", path=rf"{log}/{v:020d}\.json$")
            for v in range(VERSIONS)
        ]
        for batch in range(BATCHES):
            values = [b'{"id": %d}' % (batch * 10 + n) for n in range(10)]
            places += produce(kafka.bootstrap_servers, name, as_records(values, partitions=2))
            stream.drain(spark)
        report = compact_table(
            stream.spec, stream.storage, lambda: spark, datetime.now(UTC), dry_run=False
        )
    assert [fault.hits for fault in lost] == [1] * VERSIONS
    assert (report.numbers["commits"], report.numbers["conflicts"]) == (1, 0), report
    table = LakeTable(path, s3)
    assert table.operations() == ["CREATE TABLE", *["STREAMING UPDATE"] * BATCHES, "OPTIMIZE"]
    assert [row["id"] for row in table.rows()] == list(range(BATCHES * 10))
    stream.assert_holds(places)
