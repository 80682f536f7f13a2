"""Records for tests: put into a topic, and known by the offsets that the broker acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tenacity import Retrying, stop_after_delay, wait_fixed

Place = tuple[str, int, int]  # topic, partition, offset

_MAX_BYTES = 16 << 20
_SECONDS = 30


@dataclass(frozen=True)
class Record:
    """One record to produce; `millis` is its timestamp, the broker's clock if None."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    millis: int | None = None


def as_records(values: Iterable[bytes | None], partitions: int = 1) -> list[Record]:
    """Values in turn over the partitions, without keys."""
    return [Record(value, partition=i % partitions) for i, value in enumerate(values)]


def produce(
    servers: str, topic: str, records: Iterable[Record], transaction: str | None = None
) -> list[Place]:
    """Produce in order; where each record is, in the order given, once all are acknowledged.

    With a `transaction` id, the records are one committed transaction.
    """
    producer = _producer(servers, transaction)
    places = _send_all(producer, topic, records)
    if transaction:
        producer.commit_transaction(_SECONDS)
    return places


def abort_transaction(
    servers: str, topic: str, records: Iterable[Record], transaction: str
) -> None:
    """Produce records that no reader of committed data ever sees: their offsets are gaps."""
    producer = _producer(servers, transaction)
    _send_all(producer, topic, records)
    producer.abort_transaction(_SECONDS)


def _producer(servers: str, transaction: str | None) -> Producer:
    settings: dict[str, object] = {
        "bootstrap.servers": servers,
        "message.max.bytes": _MAX_BYTES,
        "enable.idempotence": True,
        "linger.ms": 5,
    }
    if transaction is None:
        return Producer(settings)
    producer = Producer(settings | {"transactional.id": transaction})
    producer.init_transactions(_SECONDS)
    producer.begin_transaction()
    return producer


def _send_all(producer: Producer, topic: str, records: Iterable[Record]) -> list[Place]:
    places: dict[int, Place] = {}
    for number, record in enumerate(records):
        _send(producer, topic, record, number, places)
    if producer.flush(_SECONDS):
        raise TimeoutError(f"{len(producer)} records of {topic} were not acknowledged")
    return [places[number] for number in sorted(places)]


def _send(
    producer: Producer, topic: str, record: Record, number: int, places: dict[int, Place]
) -> None:
    def acknowledged(error: object, message: Message) -> None:
        if error is not None:
            raise RuntimeError(f"record {number} of {topic}: {error}")
        places[number] = (topic, message.partition(), message.offset())

    producer.produce(
        topic,
        value=record.value,
        key=record.key,
        partition=record.partition,
        timestamp=record.millis or 0,
        on_delivery=acknowledged,
    )
    producer.poll(0)


@contextmanager
def steady_load(servers: str, topic: str) -> Iterator[list[Place]]:
    """Twenty records `{"id": n}` in two partitions, three times a second; where they are."""
    places: list[Place] = []
    done = threading.Event()

    def send() -> None:
        while not done.wait(0.3):
            values = [b'{"id":%d}' % n for n in range(20)]
            places.extend(produce(servers, topic, as_records(values, partitions=2)))

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield places
    finally:
        done.set()
        sender.join()


def grow_topic(servers: str, topic: str, partitions: int) -> None:
    """Give a topic more partitions, `partitions` in all."""
    admin = AdminClient({"bootstrap.servers": servers})
    grown = admin.create_partitions([NewPartitions(topic, partitions)])
    grown[topic].result(_SECONDS)


def delete_records(servers: str, topic: str, before: dict[int, int]) -> None:
    """Let retention pass: delete the records before an offset, by partition."""
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
    for future in admin.delete_records(wanted).values():
        future.result(_SECONDS)


def recreate_topic(servers: str, topic: str, partitions: int) -> None:
    """Delete a topic and make it anew: its offsets begin again at 0."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(_SECONDS)
    for attempt in Retrying(stop=stop_after_delay(_SECONDS), wait=wait_fixed(0.2), reraise=True):
        with attempt:  # the name stays taken for a moment
            admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_SECONDS)
    for attempt in Retrying(stop=stop_after_delay(_SECONDS), wait=wait_fixed(0.2), reraise=True):
        with attempt:  # brokers forget the old one, and find leaders, one after the other
            found = admin.list_topics(topic, timeout=_SECONDS).topics[topic]
            assert len(found.partitions) == partitions
            assert all(p.leader >= 0 for p in found.partitions.values())
