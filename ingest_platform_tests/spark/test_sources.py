"""What a topic can do to a stream: grow, have gaps, lose records, be one of several."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import LedgerImbalanceError, OffsetsLostError
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import (
    Record,
    abort_transaction,
    as_records,
    grow_topic,
    produce,
)

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]


def ids(numbers: range) -> list[bytes]:
    return [b'{"id":%d}' % n for n in numbers]


def test_topic_gains_partitions(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """A new partition is read from its first record; what was sent before anyone saw it counts."""
    servers, name = kafka.bootstrap_servers, topic(3)
    stream = deploy(name)
    places = produce(servers, name, as_records(ids(range(30)), 3))
    stream.drain(spark)
    grow_topic(servers, name, 6)
    places += produce(servers, name, as_records([*ids(range(60)), b"{"], 6))
    stream.drain(spark)
    stream.assert_holds(places)
    second = stream.ledgers()[1].offsets.to_ledger()[name]
    assert {partition: start for partition, (start, _) in second.items()} == {
        **{"0": 10, "1": 10, "2": 10},
        **{"3": 0, "4": 0, "5": 0},
    }


def test_gaps_in_the_offsets(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """A missing offset is a lost record, unless the owner of the topic says that it has gaps."""
    servers, name = kafka.bootstrap_servers, topic()
    stream = deploy(name, source={"options": {"kafka.isolation.level": "read_committed"}})
    places = produce(servers, name, as_records(ids(range(3))), transaction=uuid.uuid4().hex)
    abort_transaction(servers, name, as_records(ids(range(5))), transaction=uuid.uuid4().hex)
    places += produce(servers, name, as_records([*ids(range(2)), b"{"]))
    with pytest.raises(LedgerImbalanceError, match="offsets span 13 but 6 records were read"):
        stream.drain(spark)
    assert (stream.rows(), stream.ledgers()) == ([], [])

    stream.edit(source={"gaps": "count"})
    stream.drain(spark)
    stream.assert_holds(places)
    [ledger] = stream.ledgers()
    assert (ledger.read, ledger.gaps, ledger.written, ledger.quarantined) == (6, 7, 5, 1)


def test_records_deleted_before_they_were_read(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Retention won: the stream stops and says so. Skipping silently would look like health."""
    servers, name = kafka.bootstrap_servers, topic()
    stream = deploy(name)
    places = produce(servers, name, as_records(ids(range(5))))
    stream.drain(spark)
    produce(servers, name, as_records(ids(range(5))))
    admin = AdminClient({"bootstrap.servers": servers})
    for deleted in admin.delete_records([TopicPartition(name, 0, 8)]).values():
        deleted.result(30)
    produce(servers, name, as_records(ids(range(5))))
    with pytest.raises(OffsetsLostError):
        stream.drain(spark)
    assert stream.held().keys() == set(places)


def test_several_topics_into_one_table(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """The same offsets of two topics are two records."""
    servers, first, second = kafka.bootstrap_servers, topic(2), topic()
    stream = deploy(first, source={"topic": None, "topics": [first, second]})
    places = produce(servers, first, as_records([*ids(range(10)), b"{"], 2))
    places += produce(servers, second, as_records([*ids(range(10)), b"{"]))
    stream.drain(spark)
    stream.assert_holds(places)
    [ledger] = stream.ledgers()
    assert set(ledger.offsets.to_ledger()) == {first, second}


def test_streams_side_by_side(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Two streams share the folder of their state, and may share a topic, but nothing more."""
    servers, name = kafka.bootstrap_servers, topic()
    streams = [deploy(name, "id BIGINT", name="one"), deploy(name, "id STRING", name="two")]
    places = produce(servers, name, as_records([*ids(range(3)), b"{"]))
    for stream in streams:
        stream.drain(spark)
    places += produce(servers, name, as_records(ids(range(3))))
    streams[1].drain(spark)
    streams[1].assert_holds(places)
    streams[0].assert_holds(places[:4])
    statuses = [stream.status() for stream in streams]
    assert [s.offsets for s in statuses if s] == [{name: {"0": 4}}, {name: {"0": 7}}]
    assert len({ledger.session for stream in streams for ledger in stream.ledgers()}) == 2


@pytest.mark.parametrize(
    ("start", "first_read"),
    [
        ({"starting_offsets": "earliest"}, 0),
        ({"starting_offsets": {"TOPIC": {"0": 3}}}, 3),
        ({"starting_timestamp": "2026-01-31T12:00:00Z"}, 4),
    ],
)
def test_where_a_new_stream_starts(
    spark: SparkSession,
    kafka: KafkaServer,
    topic: MakeTopic,
    deploy: Deploy,
    start: dict,
    first_read: int,
) -> None:
    """It is decided once, at the first start; later ones go on where the checkpoint is."""
    servers, name = kafka.bootstrap_servers, topic()
    if isinstance(start.get("starting_offsets"), dict):
        start = {"starting_offsets": {name: start["starting_offsets"]["TOPIC"]}}
    noon = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)
    records = [Record(b'{"id":%d}' % n, millis=noon + 60_000 * (n - 4)) for n in range(6)]
    places = produce(servers, name, records)
    stream = deploy(name, source=start)
    stream.drain(spark)
    stream.edit(source={"starting_offsets": "latest", "starting_timestamp": None})
    places += produce(servers, name, as_records(ids(range(2))))
    stream.drain(spark)
    assert stream.held().keys() == set(places[first_read:])


def test_batches_keep_to_the_rate_limit(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """After an outage the backlog must come in pieces that fit into memory."""
    servers, name = kafka.bootstrap_servers, topic(2)
    stream = deploy(name, source={"max_offsets_per_trigger": 10})
    places = produce(servers, name, as_records(ids(range(25)), 2))
    stream.drain(spark)
    stream.assert_holds(places)
    ledgers = stream.ledgers()
    assert [ledger.batch for ledger in ledgers] == list(range(len(ledgers)))
    assert max(ledger.read for ledger in ledgers) <= 10
