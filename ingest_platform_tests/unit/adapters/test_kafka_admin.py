"""Questions to a real broker."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ingest_platform.adapters.kafka_admin import KafkaAdmin, Retention, behind
from ingest_platform.adapters.kafka_lag import LagProbe
from ingest_platform.errors import KafkaUnreachableError, TopicMissingError
from ingest_platform.model.offsets import Positions
from ingest_platform.spec import KafkaEnvironment


@pytest.fixture(scope="module")
def topic(kafka) -> str:
    """A topic of three partitions; 0 holds four records, 1 holds one, 2 none."""
    name = f"admin-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    new = NewTopic(name, 3, 1, config={"retention.ms": "3600000", "cleanup.policy": "delete"})
    admin.create_topics([new])[name].result(20)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for partition in (0, 0, 0, 0, 1):
        producer.produce(name, b"{}", partition=partition)
    producer.flush(20)
    return name


@pytest.fixture(scope="module")
def admin(kafka) -> KafkaAdmin:
    """An administrator of the embedded broker."""
    return KafkaAdmin(KafkaEnvironment(bootstrap_servers=kafka.bootstrap_servers))


def test_offsets(admin, topic):
    assert admin.partitions(topic) == [0, 1, 2]
    assert admin.latest([topic]) == Positions({topic: {0: 4, 1: 1, 2: 0}})
    assert admin.earliest([topic]) == Positions({topic: {0: 0, 1: 0, 2: 0}})


def test_retention(admin, topic):
    allowed = 16 << 20  # the embedded broker's
    expected = Retention(3_600_000, None, compacted=False, message_bytes=allowed)
    assert admin.retention(topic) == expected


def test_missing_topic_is_named_and_not_created(admin):
    """Metadata requests of some clients create the topic that they ask for."""
    name = f"missing-{uuid.uuid4()}"
    for ask in (admin.partitions, admin.retention, lambda t: admin.latest([t])):
        with pytest.raises(TopicMissingError, match=name):
            ask(name)
    assert not admin.exists(name)


def test_unreachable_broker():
    admin = KafkaAdmin(KafkaEnvironment(bootstrap_servers="127.0.0.1:9"), timeout=1)
    with pytest.raises(KafkaUnreachableError) as caught:
        admin.partitions("clicks")
    assert caught.value.retryable
    assert caught.value.where == "127.0.0.1:9"


def test_behind_counts_unread_offsets():
    latest = Positions({"t": {0: 10, 1: 5, 2: 3}})
    assert behind(Positions({"t": {0: 4, 1: 6}}), latest) == {"t-0": 6, "t-1": 0, "t-2": 3}


def test_a_partition_that_is_read_to_its_end_is_not_behind(kafka, topic):
    """An empty answer is how a driver knows that it has caught up."""
    probe = LagProbe(KafkaEnvironment(bootstrap_servers=kafka.bootstrap_servers), (topic,))
    assert probe.behind(Positions({topic: {0: 1, 1: 1, 2: 0}})) == {f"{topic}-0": 3}
    assert probe.behind(Positions({topic: {0: 4, 1: 1, 2: 0}})) == {}
    probe.close()
