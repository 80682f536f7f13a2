"""Checkpoint and table that tell different stories: refused, unless nothing is at stake."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import CheckpointDamagedError
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import Place, as_records, produce

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]


def more(kafka: KafkaServer, stream: DeployedStream) -> list[Place]:
    """Three good records and a bad one."""
    values = [*(b'{"id":%d}' % n for n in range(3)), b"{"]
    [topic] = stream.spec.source.all_topics
    return produce(kafka.bootstrap_servers, topic, as_records(values))


def folder(stream: DeployedStream) -> Path:
    return Path(stream.spec.root) / stream.checkpoint


def files(stream: DeployedStream) -> dict[str, bytes]:
    """Everything that the stream has written, but for its status and leases."""
    lake = Path(stream.spec.table.path).parent
    kept = (p for p in lake.rglob("*") if p.is_file() and p.parent.name not in {"lease", "stream"})
    return {str(p): p.read_bytes() for p in kept}


def truncate(checkpoint: Path) -> None:
    (checkpoint / "offsets" / "1").write_bytes((checkpoint / "offsets" / "1").read_bytes()[:30])


def empty(checkpoint: Path) -> None:
    (checkpoint / "offsets" / "1").write_bytes(b"")


def garble(checkpoint: Path) -> None:
    text = (checkpoint / "offsets" / "1").read_text()
    (checkpoint / "offsets" / "1").write_text(text.replace('"0":8', '"0":6'))


def lose_offsets(checkpoint: Path) -> None:
    (checkpoint / "offsets" / "1").unlink()


def lose_start(checkpoint: Path) -> None:
    (checkpoint / "sources" / "0" / "0").unlink()
    for name in ("1", "0"):
        (checkpoint / "commits" / name).unlink()
    (checkpoint / "offsets" / "1").unlink()


def lose_metadata(checkpoint: Path) -> None:
    (checkpoint / "metadata").unlink()


def truncate_metadata(checkpoint: Path) -> None:
    (checkpoint / "metadata").write_text('{"id":"')


def delete(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)


def roll_back(checkpoint: Path) -> None:
    for name in ("commits/1", "offsets/1"):
        (checkpoint / name).unlink()


def lose_everything_but_metadata(checkpoint: Path) -> None:
    for name in ("commits", "offsets", "sources"):
        shutil.rmtree(checkpoint / name)


DAMAGES = {
    truncate: "offsets/1 is truncated",
    empty: "offsets/1 is truncated",
    garble: "offsets/1 names other offsets than the table's ledger",
    lose_offsets: "offsets/1 is missing, but commits/1 exists",
    lose_start: "sources/0/0 is missing",
    lose_metadata: "metadata is missing although batches were planned",
    truncate_metadata: "metadata is not what Spark wrote",
    delete: "is missing, but the table holds data",
    roll_back: "it was rolled back",
    lose_everything_but_metadata: "knows batch -1 at most, but the table holds batch 1",
}


@pytest.fixture
def stream(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> DeployedStream:
    """A stream of two partitions with batches 0 and 1; partition 1 has never had a record."""
    stream = deploy(topic(2))
    for _ in range(2):
        more(kafka, stream)
        stream.drain(spark)
    return stream


def read(stream: DeployedStream, until: int = 8) -> list[Place]:
    """What the two batches hold."""
    [topic] = stream.spec.source.all_topics
    return [(topic, 0, offset) for offset in range(until)]


def test_last_commit_deleted(
    spark: SparkSession, kafka: KafkaServer, stream: DeployedStream
) -> None:
    """Spark runs that batch again, under the same number; the table has it and takes no more."""
    (folder(stream) / "commits" / "1").unlink()  # its checksum `.1.crc` stays
    stream.drain(spark)
    stream.assert_holds(read(stream))
    assert [ledger.batch for ledger in stream.ledgers()] == [0, 1]
    assert (folder(stream) / "commits" / "1").exists()
    more(kafka, stream)
    stream.drain(spark)
    stream.assert_holds(read(stream, until=12))


def test_damage_is_refused(spark: SparkSession, kafka: KafkaServer, stream: DeployedStream) -> None:
    """Starting anyway would read records twice, or skip some; both are found much later."""
    more(kafka, stream)
    stream.edit(state_path=f"{Path(stream.spec.root).parent}/elsewhere")
    with pytest.raises(CheckpointDamagedError, match="is missing, but the table holds data"):
        stream.drain(spark)
    stream.edit(state_path=None)
    whole = folder(stream).with_name("whole")
    shutil.copytree(folder(stream), whole)
    for damage, finding in DAMAGES.items():
        damage(folder(stream))
        before = files(stream)
        with pytest.raises(CheckpointDamagedError, match=finding) as refused:
            stream.drain(spark)
        assert refused.value.exit_code == 4
        assert str(folder(stream)) in str(refused.value)
        assert files(stream) == before, damage
        shutil.rmtree(folder(stream), ignore_errors=True)
        shutil.copytree(whole, folder(stream))
    stream.drain(spark)
    stream.assert_holds(read(stream, until=12))


def test_new_session_where_the_table_ends(
    spark: SparkSession, kafka: KafkaServer, stream: DeployedStream
) -> None:
    """What the message says to write must work as it stands, also for empty partitions."""
    shutil.rmtree(folder(stream))
    more(kafka, stream)
    with pytest.raises(CheckpointDamagedError) as refused:
        stream.drain(spark)
    said = refused.value.remedy.partition("starting_offsets would: ")[2]
    start, _ = json.JSONDecoder().raw_decode(said)
    stream.edit(source={"starting_offsets": start})
    stream.drain(spark)
    stream.assert_holds(read(stream, until=12))


def test_table_restored_or_deleted(
    spark: SparkSession, kafka: KafkaServer, stream: DeployedStream
) -> None:
    """Batches are gone that the checkpoint counts as done: going on would miss them for ever."""
    table = f"delta.`{stream.spec.table.path}`"
    [first] = [
        row["version"]
        for row in spark.sql(f"DESCRIBE HISTORY {table}").collect()
        if '"batch":0,' in (row["userMetadata"] or "")
    ]
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {first}")
    more(kafka, stream)
    with pytest.raises(CheckpointDamagedError, match="the table was rolled back"):
        stream.drain(spark)
    kept = folder(stream).rename(folder(stream).with_name("kept"))
    with pytest.raises(CheckpointDamagedError) as refused:
        stream.drain(spark)
    assert '{"0": 4, "1": 0}' in refused.value.remedy
    assert [row["_kafka_offset"] for row in stream.rows()] == [0, 1, 2]

    kept.rename(folder(stream))
    shutil.rmtree(stream.spec.table.path)
    with pytest.raises(CheckpointDamagedError, match="the table holds none of stream"):
        stream.drain(spark)
    assert not Path(stream.spec.table.path).exists()
