"""Specs that only Spark or Delta can find wrong: still the user's error, and nothing is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingest_platform.errors import SpecError
from ingest_platform_tests.deployed_stream import DeployedStream

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no DDL": ("id BIGINT,, x", {}, "not valid DDL"),
    "unknown type": ("id NUMBER", {}, "not valid DDL"),
    "columns that differ in case": ("id BIGINT, ID STRING", {}, "COLUMN_ALREADY_EXISTS"),
    "name of the platform's": ("_kafka_offset BIGINT", {}, "start with an underscore"),
    "name that Delta refuses": ("`a b` BIGINT", {}, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
    "type that Delta refuses": ("i INTERVAL DAY", {}, "DELTA_UNSUPPORTED_DATA_TYPES"),
    "CHAR": ("c CHAR(3)", {}, "column c is CHAR"),
    "NOT NULL inside": ("u STRUCT<id: INT NOT NULL>", {}, "column u has a NOT NULL inside"),
    "hours of a number": ("id BIGINT", {"partition_by": ["hours(id)"]}, "DATATYPE_MISMATCH"),
    "no such column": ("id BIGINT", {"partition_by": ["day"]}, "'day' is not a column"),
    "same column twice": ("id BIGINT", {"partition_by": ["id", "id"]}, "duplicate column"),
    "column of the partition's name": (
        "ts TIMESTAMP, ts_hour STRING",
        {"partition_by": ["hours(ts)"]},
        "COLUMN_ALREADY_EXISTS",
    ),
    "no such column to cluster by": ("id BIGINT", {"cluster_by": ["day"]}, "'day' is not a column"),
    "clusters of objects": ("u STRUCT<a: INT>", {"cluster_by": ["u"]}, "DELTA_CLUSTERING"),
    "clusters by what has no statistics": (
        ", ".join(f"c{n} BIGINT" for n in range(33)),
        {"cluster_by": ["c32"]},
        "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
    ),
    "partitions of objects": (
        "u STRUCT<a: INT>",
        {"partition_by": ["u"]},
        "INVALID_PARTITION_COLUMN_DATA_TYPE",
    ),
    "nothing but partitions": (
        "id BIGINT",
        {"partition_by": ["id"], "coordinates": False},
        "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
    ),
    "unknown property": ("id BIGINT", {"properties": {"delta.x": "1"}}, "DELTA_UNKNOWN_CONFIG"),
    "value of a property": (
        "id BIGINT",
        {"properties": {"delta.checkpointInterval": "often"}},
        "positive integer",
    ),
    "event time": ("id BIGINT", {"event_time": "at"}, "'at' is not a TIMESTAMP column"),
    "event time of another type": ("at BIGINT", {"event_time": "at"}, "not a TIMESTAMP column"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(spark: SparkSession, topic: MakeTopic, deploy: Deploy, name: str) -> None:
    """A supervisor that takes it for a passing fault starts the driver again for ever."""
    schema, table, finding = WRONG[name]
    stream = deploy(topic(), schema, table=table)
    with pytest.raises(SpecError, match=finding) as refused:
        stream.drain(spark)
    assert "\n\tat " not in str(refused.value)
    assert not Path(stream.spec.table.path).exists()
    status = stream.status()
    assert status is not None
    assert status.error is not None
    assert (status.error.kind, status.error.retryable) == ("SpecError", False)


@pytest.mark.parametrize(
    ("start", "finding"),
    [
        ({"TOPIC": {"0": 0}}, r"missing \['t-.*-1'\]"),
        ({"TOPIC": {"0": 0, "1": 0, "2": 0}}, r"unknown \['t-.*-2'\]"),
        ({"other": {"0": 0}}, r"unknown \['other-0'\]"),
    ],
)
def test_start_that_leaves_partitions_open(
    spark: SparkSession, topic: MakeTopic, deploy: Deploy, start: dict[str, Any], finding: str
) -> None:
    """Spark finds it in its first batch, as an assertion that names no partition."""
    name = topic(2)
    offsets = {name if topic_name == "TOPIC" else topic_name: o for topic_name, o in start.items()}
    stream = deploy(name, source={"starting_offsets": offsets})
    with pytest.raises(SpecError, match=finding):
        stream.drain(spark)


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        ("{", "not a JSON Schema"),
        ('{"type": "objekt"}', "not a JSON Schema"),
        ('{"type": "array"}', "the schema's type is not object"),
        ('{"type": "object", "properties": {}}', "the schema has no columns"),
        ('{"type":"object","properties":{"a":{"$ref":"other.json#/a"}}}', "leaves the file"),
        ('{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}', "does not exist"),
        ('{"$ref":"#"}', "refers to itself"),
        (None, "not a JSON Schema: .*No such file"),
    ],
)
def test_wrong_schema_file(
    spark: SparkSession, topic: MakeTopic, deploy: Deploy, content: str | None, finding: str
) -> None:
    """The file is the user's too; the message names it."""
    stream = deploy(topic(), decode={"schema": None, "schema_file": "s.json"})
    if content is not None:
        (stream.file.parent / "s.json").write_text(content)
    with pytest.raises(SpecError, match=finding) as refused:
        stream.drain(spark)
    assert "s.json" in str(refused.value)
