"""From a topic to table, quarantine, ledger and status, through the driver itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from ingest_platform.adapters.table_checksum import size_by_checksum
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import SpecError, UnexpectedFieldsError
from ingest_platform.model.states import StreamState
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import Record, as_records, produce

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

NEWEST = "2026-01-31T01:59:59.123456Z"
LARGE = {"max.message.bytes": str(16 << 20)}


def pa_time(text: str) -> pa.Scalar:
    return pa.scalar(datetime.fromisoformat(text), pa.timestamp("us", "UTC"))


def rows(stream: DeployedStream, *columns: str) -> list[tuple]:
    return [tuple(row[c] for c in columns) for row in stream.rows()]


def test_every_kind_of_record(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """One bad record among good ones must cost that record only, and nobody may lose its bytes."""
    large = b"x" * 10_000_000
    good = [b'{"id":1}', b'{"id":2,"name":"%b"}' % large[:1_000_000]]
    good += [b'{"id":3,"name":"%b"}' % large]
    bad = [b'{"id":', b'{"id":"x"}', b"", b"\xff", b'{"id":4,"name":"%b' % large, b"[" * 1000]
    name = topic(1, LARGE)
    stream = deploy(name, "id BIGINT, name STRING")
    values = [good[0], bad[0], good[1], *bad[1:4], good[2], *bad[4:], None]
    records = [Record(v, key=None if n % 2 else b"k") for n, v in enumerate(values)]
    places = produce(kafka.bootstrap_servers, name, records)
    stream.drain(spark)

    stream.assert_holds(places[:-1])  # the tombstone is skipped, by policy
    assert [(r["id"], len(r["name"] or "")) for r in stream.rows()] == [
        (1, 0),
        (2, 1_000_000),
        (3, 10_000_000),
    ]
    rejected = stream.rejected()
    assert [r["value"] for r in rejected] == bad
    assert [r["key"] for r in rejected] == [record.key for record in records if record.value in bad]
    assert [r["reason"] for r in rejected] == [
        "undecodable",
        "undecodable",
        "empty_value",
        "not_utf8",
        "undecodable",
        "undecodable",
    ]
    [ledger] = stream.ledgers()
    assert (ledger.read, ledger.written, ledger.quarantined, ledger.skipped) == (10, 3, 6, 1)
    assert ledger.offsets.to_ledger() == {name: {"0": [0, 10]}}
    status = stream.status()
    assert status is not None
    assert (status.state, status.session, status.error) == (
        StreamState.STOPPED,
        ledger.session,
        None,
    )
    assert status.totals == {
        "rows": 3,
        "quarantined": 6,
        "skipped": 1,
        "files": 1,
        "bytes": status.totals["bytes"],
        "batches": 1,
    }
    assert status.offsets == {name: {"0": 10}}
    path = stream.spec.table.path
    found = size_by_checksum(path, stream.storage, status.table_version)
    assert found is not None
    assert found == TableLog(path, stream.storage).size()


def test_coordinates_are_kafkas(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """The audit reads offsets back from the rows: they must be the broker's, to the millisecond."""
    name = topic(3)
    stream = deploy(name)
    records = [Record(b'{"id":%d}' % n, partition=n % 3, millis=1769860800123) for n in range(30)]
    places = produce(kafka.bootstrap_servers, name, records)
    stream.drain(spark)
    found = rows(stream, "id", "_kafka_topic", "_kafka_partition", "_kafka_offset")
    assert sorted(found) == [(n, *place) for n, place in enumerate(places)]
    assert {r["_kafka_timestamp"].timestamp() for r in stream.rows()} == {1769860800.123}


def test_tombstones_to_the_quarantine(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Where a tombstone means a deletion, someone wants its key."""
    name = topic()
    stream = deploy(name, decode={"tombstones": "quarantine"})
    records = [Record(b'{"id":1}'), Record(None, key=b"gone"), Record(None)]
    places = produce(kafka.bootstrap_servers, name, records)
    stream.drain(spark)
    stream.assert_holds(places)
    assert [(r["key"], r["value"], r["reason"]) for r in stream.rejected()] == [
        (b"gone", None, "tombstone"),
        (None, None, "tombstone"),
    ]


def test_rescued_fields_are_in_the_table(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """A field of a new producer version is kept from its first record on."""
    name = topic()
    stream = deploy(name, "id BIGINT, user STRUCT<id: INT>", decode={"unexpected_fields": "rescue"})
    values = [b'{"id":1}', b'{"id":2,"x":[1],"user":{"id":1,"z":"a"}}', b'{"id":3,"x":1,"x":2}']
    places = produce(kafka.bootstrap_servers, name, as_records(values))
    stream.drain(spark)
    stream.assert_holds(places)
    rescued = [json.loads(r["_rescued_data"] or "null") for r in stream.rows()]
    assert rescued == [None, {"x": "[1]", "user.z": "a"}, {"x": "2"}]


def test_added_columns(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Names that differ in case are one column to Spark: they must not stop the stream."""
    name = topic()
    stream = deploy(name, decode={"unexpected_fields": "add_columns"})
    values = [b'{"id":1,"x":1,"y":{"a":1}}', b'{"id":2,"X":2}', b'{"id":3,"x":3,"X":4}']
    places = produce(kafka.bootstrap_servers, name, as_records(values))
    stream.drain(spark)
    more = [b'{"id":4,"Y":"b","z":true}', b'{"id":5,"no name":1}', b'{"id":"x","w":1}']
    places += produce(kafka.bootstrap_servers, name, as_records(more))
    stream.drain(spark)
    stream.assert_holds(places)
    table = [{k: v for k, v in r.items() if not k.startswith("_")} for r in stream.rows()]
    lowered = [{k.lower(): v for k, v in row.items() if v is not None} for row in table]
    assert lowered == [
        {"id": 1, "x": "1", "y": '{"a":1}'},
        {"id": 2, "x": "2"},
        {"id": 4, "y": "b", "z": "true"},
    ]
    assert {column.lower() for column in table[0]} == {"id", "x", "y", "z"}
    assert [r["_kafka_offset"] for r in stream.rejected()] == [2, 4, 5]


def test_added_column_whose_name_is_taken(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """It costs that record only; a driver that fails on it would fail again and again."""
    name = topic()
    stream = deploy(
        name,
        "ts TIMESTAMP",
        decode={"unexpected_fields": "add_columns"},
        table={"partition_by": ["hours(ts)"]},
    )
    noon = b'{"ts":"2026-01-31T12:00:00Z"}'
    places = produce(kafka.bootstrap_servers, name, as_records([b'{"Ts_Hour":"12"}', noon]))
    stream.drain(spark)
    spark.sql(f"ALTER TABLE delta.`{stream.spec.table.path}` ADD COLUMNS (note INT)")
    places += produce(kafka.bootstrap_servers, name, as_records([b'{"note":"x"}', noon]))
    stream.drain(spark)
    stream.assert_holds(places)
    assert rows(stream, "ts_hour", "note") == [("2026-01-31-12", None)] * 2
    assert {r["reason"] for r in stream.rejected()} == {"unexpected_fields"}


def test_refused_fields_stop_the_stream_until_the_schema_knows_them(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """A stream under contract commits nothing that breaks it, and loses nothing over that."""
    name = topic()
    stream = deploy(name, decode={"unexpected_fields": "fail"})
    places = produce(
        kafka.bootstrap_servers, name, as_records([b'{"id":1}', b"{", b'{"id":2,"x":1}'])
    )
    with pytest.raises(UnexpectedFieldsError, match="unexpected_fields is `fail`") as refused:
        stream.drain(spark)
    assert f"{name}-0@2" in str(refused.value)
    assert (stream.rows(), stream.rejected()) == ([], [])
    status = stream.status()
    assert status is not None
    assert status.error is not None
    assert (status.state, status.error.kind) == (StreamState.FAILED, "UnexpectedFieldsError")
    stream.edit(decode={"schema": "id BIGINT, x INT"})
    stream.drain(spark)
    stream.assert_holds(places)
    assert rows(stream, "id", "x") == [(1, None), (2, 1)]


def test_policy_changes_with_the_table_in_place(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Columns of an earlier policy stay; whoever changes the policy need not make a new table."""
    name = topic()
    stream = deploy(name, decode={"unexpected_fields": "add_columns"})
    places = []
    for policy in ("add_columns", "rescue", "ignore", "add_columns"):
        stream.edit(decode={"unexpected_fields": policy})
        places += produce(kafka.bootstrap_servers, name, as_records([b'{"id":1,"x":1}']))
        stream.drain(spark)
    stream.assert_holds(places)
    assert rows(stream, "x", "_rescued_data") == [
        ("1", None),
        (None, '{"x":"1"}'),
        (None, None),
        ("1", None),
    ]


def test_schema_that_contradicts_the_table(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """A column's type cannot be changed under its readers."""
    name = topic()
    stream = deploy(name)
    places = produce(kafka.bootstrap_servers, name, as_records([b'{"id":1}']))
    stream.drain(spark)
    stream.edit(decode={"schema": "id STRING"})
    produce(kafka.bootstrap_servers, name, as_records([b'{"id":2}']))
    with pytest.raises(SpecError, match="column id is bigint in the table, but string"):
        stream.drain(spark)
    assert stream.held().keys() == set(places)


def test_json_schema_file(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Teams share schemas as JSON Schema files; the file lies beside the spec that names it."""
    name = topic()
    stream = deploy(name, decode={"schema": None, "schema_file": "order.json"})
    schema = {
        "$defs": {"item": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": ["string", "null"], "format": "date-time"},
            "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "anything": {},
        },
        "required": ["id"],
    }
    (stream.file.parent / "order.json").write_text(json.dumps(schema))
    value = b'{"id":1,"at":"2026-01-31T12:00:00Z","items":[{"sku":"a"}],"anything":{"b":[1]}}'
    places = produce(kafka.bootstrap_servers, name, as_records([value, b'{"id":"x"}']))
    stream.drain(spark)
    stream.assert_holds(places)
    [row] = stream.rows()
    assert row["at"].isoformat() == "2026-01-31T12:00:00+00:00"
    assert (row["id"], row["items"], row["anything"]) == (1, [{"sku": "a"}], '{"b":[1]}')


@pytest.mark.parametrize("threshold", [0, 1_000_000], ids=["from footers", "by Delta"])
def test_statistics_of_files(
    spark: SparkSession,
    kafka: KafkaServer,
    topic: MakeTopic,
    deploy: Deploy,
    s3: S3Bucket,
    threshold: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Readers skip files by them: a bound that is too tight hides rows that are there."""
    monkeypatch.setattr("ingest_platform.stream.batch._LARGE_BATCH", threshold)
    name = topic(2)
    stream = deploy(
        name,
        "id BIGINT, name STRING, ts TIMESTAMP, none INT",
        s3=s3,
        table={"event_time": "ts", "partition_by": ["hours(ts)"]},
    )
    values = [
        b'{"id":%d,"name":"%b","ts":"2026-01-31T%02d:59:59.123456Z"}' % (n, b"n" * (30 + n), n % 2)
        for n in range(10)
    ]
    places = produce(kafka.bootstrap_servers, name, as_records([*values, b"{"], 2))
    stream.drain(spark)
    stream.assert_holds(places)
    [ledger] = stream.ledgers()
    assert (ledger.max_event_time or "").startswith("2026-01-31T01:59:59.123")
    ours = stream.delta().to_pyarrow_dataset()
    for n in range(10):
        hour = pa_time(f"2026-01-31T{n % 2:02d}:59:59.123456Z")
        found = (ds.field("name") == "n" * (30 + n)) & (ds.field("ts") == hour)
        assert ours.to_table(filter=found & ds.field("none").is_null())["id"].to_pylist() == [n]
    spark_s = spark.read.format("delta").load(stream.spec.table.path)
    assert (
        spark_s.filter(f"name >= '{'n' * 39}' AND ts >= '{NEWEST}' AND none IS NULL").count() == 1
    )


def test_path_with_odd_characters(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, tmp_path: Path
) -> None:
    """Folders of real machines have blanks and percent signs; no reader may see another path."""
    name = topic()
    stream = deploy(
        name,
        table={"path": f"{tmp_path}/my lake/50% = ü/t", "partition_by": ["id"]},
        decode={"unexpected_fields": "add_columns"},
    )
    places = produce(kafka.bootstrap_servers, name, as_records([b'{"id":1,"x":2}', b"{"]))
    stream.drain(spark)
    places += produce(kafka.bootstrap_servers, name, as_records([b'{"id":2}', b"{"]))
    stream.drain(spark)
    stream.assert_holds(places)


def test_table_on_s3_with_state_on_a_disk(
    spark: SparkSession,
    kafka: KafkaServer,
    topic: MakeTopic,
    deploy: Deploy,
    s3: S3Bucket,
    tmp_path: Path,
) -> None:
    """Checkpoints on a disk are faster; each needs the writer that fits its file system."""
    name = topic()
    stream = deploy(name, s3=s3, state_path=str(tmp_path / "state"))
    places = produce(kafka.bootstrap_servers, name, as_records([b'{"id":1}', b"{"]))
    stream.drain(spark)
    stream.assert_holds(places)
    assert (tmp_path / "state" / "streams" / "stream" / "checkpoint" / "commits" / "0").exists()
