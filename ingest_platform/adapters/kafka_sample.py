"""The newest records of a topic, looked at by a consumer that commits nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ingest_platform.spec.environment import KafkaEnvironment

_POLL_SECONDS = 0.5
_OFFSETS = 100
_SETTINGS = {
    "group.id": "ingest-platform-check",  # never joined: partitions are assigned
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "log_level": 0,
}


@dataclass
class Sample:
    """What was seen.

    Attributes:
        records: Records that were delivered.
        bytes: Sizes of their keys and values.
        gaps: Offsets without a record, in the partitions that were read to their end.
        newest_ms: The newest timestamp; 0 without a record.
    """

    records: int = 0
    bytes: int = 0
    gaps: int = 0
    newest_ms: int = 0

    @property
    def bytes_per_record(self) -> float | None:
        """The mean; None without a record."""
        return self.bytes / self.records if self.records else None


def newest_records(
    kafka: KafkaEnvironment,
    topic: str,
    bounds: Mapping[int, tuple[int, int]],
    *,
    seconds: float,
) -> Sample:
    """Read the last 100 offsets of each partition, for `seconds` at most.

    Args:
        kafka: The cluster.
        topic: The topic.
        bounds: First offset, and the one after the last, by partition.
        seconds: How long to wait for all of them; what was seen until then counts.
    """
    starts = {p: max(begin, end - _OFFSETS) for p, (begin, end) in bounds.items() if end > begin}
    sample, seen = Sample(), dict.fromkeys(starts, 0)
    if not starts:
        return sample
    consumer = Consumer({**kafka.client_options(), **_SETTINGS})
    try:
        consumer.assign([TopicPartition(topic, p, start) for p, start in starts.items()])
        deadline, left = time.monotonic() + seconds, set(starts)
        while left and time.monotonic() < deadline:
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            partition = int(message.partition() or 0)
            if _at_end(message):
                left.discard(partition)
                sample.gaps += int(message.offset() or 0) - starts[partition] - seen[partition]
            else:
                seen[partition] += 1
                _count(message, sample)
    except KafkaException:
        return sample  # brokers that do not answer are told by another check
    finally:
        consumer.close()
    return sample


def _at_end(message: Message) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    raise KafkaException(error)


def _count(message: Message, sample: Sample) -> None:
    sample.records += 1
    sample.bytes += len(message.key() or b"") + len(message.value() or b"")
    sample.newest_ms = max(sample.newest_ms, message.timestamp()[1])
