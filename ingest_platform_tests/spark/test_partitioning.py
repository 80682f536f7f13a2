"""Partitions by time, from the event or from the record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import Record, produce

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

RECORDED = int(datetime(2026, 2, 1, 0, 30, tzinfo=UTC).timestamp() * 1000)
RECORDS = [
    Record(b'{"ts":"2026-01-31T22:59:59.999999Z","country":"ch"}', millis=RECORDED),
    Record(b'{"ts":"2026-01-31T23:00:00Z","country":"li"}', millis=RECORDED),
    Record(b'{"ts":"2026-02-01T00:30:00+02:00"}', millis=RECORDED + 3_600_000),
    Record(b"{", millis=RECORDED),
]


@pytest.mark.parametrize(
    ("partition_by", "column", "values"),
    [
        ("hours(ts)", "ts_hour", ["2026-01-31-22", "2026-01-31-23", "2026-01-31-22"]),
        (
            "hours(_kafka_timestamp)",
            "kafka_timestamp_hour",
            ["2026-02-01-00", "2026-02-01-00", "2026-02-01-01"],
        ),
        ("days(ts)", "ts_day", [date(2026, 1, 31)] * 3),
        ("country", "country", ["ch", "li", None]),
    ],
)
def test_partition_of_each_row(
    spark: SparkSession,
    kafka: KafkaServer,
    topic: MakeTopic,
    deploy: Deploy,
    partition_by: str,
    column: str,
    values: list[object],
) -> None:
    """In UTC, whatever the zone of machine or record, or late data lands in the wrong hour."""
    name = topic()
    table = {"partition_by": [partition_by], "target_writers": 1}
    stream = deploy(name, "ts TIMESTAMP, country STRING", table=table)
    places = produce(kafka.bootstrap_servers, name, RECORDS)
    stream.drain(spark)
    stream.assert_holds(places)
    assert [r[column] for r in stream.rows()] == values
    delta = DeltaTable(stream.spec.table.path)
    assert delta.metadata().partition_columns == [column]
    assert len(delta.file_uris()) == len(set(values)), "one file per writer and partition"


def test_a_clustered_table(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """The stream writes as ever; OPTIMIZE finds the statistics that clustering goes by."""
    name = topic()
    table = {"cluster_by": ["country", "_kafka_timestamp"], "target_writers": 1}
    source = {"topic": name, "max_offsets_per_trigger": 1}
    stream = deploy(name, "ts TIMESTAMP, country STRING", table=table, source=source)
    places = produce(kafka.bootstrap_servers, name, RECORDS)
    stream.drain(spark)
    path = stream.spec.table.path
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").first()
    assert detail
    assert (detail["clusteringColumns"], detail["numFiles"]) == (table["cluster_by"], 3)
    done = spark.sql(f"OPTIMIZE delta.`{path}`").first()
    assert done
    assert done["metrics"]["clusteringStats"]["inputOtherFiles"]["numFiles"] == 3
    stream.assert_holds(places)


def test_filter_on_the_time_prunes_partitions(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Users filter on the column that they know; reading every hour for that would be a scan."""
    name = topic()
    stream = deploy(name, "ts TIMESTAMP", table={"partition_by": ["hours(ts)"]})
    produce(kafka.bootstrap_servers, name, RECORDS)
    stream.drain(spark)
    table = spark.read.format("delta").load(stream.spec.table.path)
    late = table.filter("ts >= '2026-01-31T23:00:00Z'")
    assert [f.rpartition("ts_hour=")[2][:13] for f in late.inputFiles()] != []
    plan = late._jdf.queryExecution().optimizedPlan().toString()
    assert "ts_hour" in plan
    assert late.count() == 1
