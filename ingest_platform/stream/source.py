"""Kafka to records: the stream, and a re-read of chosen ranges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from ingest_platform.model.offsets import OffsetRange, Positions
from ingest_platform.spec import KafkaEnvironment, SourceSpec

# Spark asks each partition for one poll after the other. Few records per poll cost a call each;
# at the end of the log an open long poll holds up the task for its whole wait, per partition.
_CONSUMER: Final[Mapping[str, str]] = {
    "kafka.max.poll.records": "5000",
    "kafka.fetch.max.wait.ms": "1",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
}


def kafka_options(source: SourceSpec, kafka: KafkaEnvironment, name: str) -> dict[str, str]:
    """Options of Spark's Kafka source but for offsets. Holds secrets: never log it."""
    options = {**_CONSUMER, **kafka.spark_options()}
    if source.bootstrap_servers:
        options["kafka.bootstrap.servers"] = source.bootstrap_servers
    options["groupIdPrefix"] = f"ingest-{name}"
    if source.min_partitions:
        options["minPartitions"] = str(source.min_partitions)
    return options | source.options


def read_stream(
    spark: SparkSession,
    source: SourceSpec,
    options: Mapping[str, str],
    most: int,
    start: Positions | None = None,
) -> DataFrame:
    """The endless read, at most `most` records a batch.

    `start`, or the spec's start, counts for a new checkpoint only.

    Data loss is an error here, always: the platform stops and reports the gap.
    """
    reader = spark.readStream.format("kafka").options(**options)
    reader = reader.option("subscribe", ",".join(source.all_topics))
    reader = reader.option("maxOffsetsPerTrigger", most)
    reader = reader.option("failOnDataLoss", "true")
    if start:
        return reader.option("startingOffsets", start.to_json()).load()
    if source.starting_timestamp:
        millis = str(int(source.starting_timestamp.timestamp() * 1000))
        reader = reader.option("startingTimestamp", millis)
        return reader.option("startingOffsetsByTimestampStrategy", "latest").load()
    if isinstance(source.starting_offsets, str):
        return reader.option("startingOffsets", source.starting_offsets).load()
    return reader.option("startingOffsets", _positions(source.starting_offsets).to_json()).load()


def read_ranges(
    spark: SparkSession, options: Mapping[str, str], ranges: Iterable[OffsetRange], group: str
) -> DataFrame:
    """Read exactly these ranges once more, as a batch.

    `group` is the consumers' group id, always the same: Spark keeps consumers and what they have
    fetched in pools by group and partition, and the fresh id that each batch query gets otherwise
    fills them with a gigabyte before anything times out.
    """
    start: dict[str, dict[int, int]] = {}
    until: dict[str, dict[int, int]] = {}
    for r in ranges:
        start.setdefault(r.topic, {})[r.partition] = r.start
        until.setdefault(r.topic, {})[r.partition] = r.until
    assign = Positions(start)
    reader = spark.read.format("kafka").options(**options).option("failOnDataLoss", "true")
    reader = reader.option("kafka.group.id", group)
    partitions = {topic: sorted(p) for topic, p in start.items()}
    return (
        reader.option("assign", json.dumps(partitions))
        .option("startingOffsets", assign.to_json())
        .option("endingOffsets", Positions(until).to_json())
        .load()
    )


def _positions(raw: Mapping[str, Mapping[str, int]]) -> Positions:
    return Positions({t: {int(p): o for p, o in ps.items()} for t, ps in raw.items()})
