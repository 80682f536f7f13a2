"""How far a stream is behind its topic: in records, and in seconds of its oldest unread record."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from confluent_kafka import Consumer, KafkaException, TopicPartition

from ingest_platform.adapters.kafka_admin import KafkaAdmin, behind
from ingest_platform.errors import KafkaUnreachableError
from ingest_platform.model.offsets import Positions
from ingest_platform.spec import KafkaEnvironment

_FETCH_BYTES = 16_384
_ANSWER_SECONDS = 2.0


class LagProbe:
    """Asks the broker; keeps one connection. Not thread safe."""

    def __init__(self, kafka: KafkaEnvironment, topics: tuple[str, ...]) -> None:
        self._kafka = kafka
        self._admin = KafkaAdmin(kafka)
        self._topics = topics
        self._consumer: Consumer | None = None

    def behind(self, read: Positions) -> dict[str, int]:
        """Records between `read` and the log's end, by `topic-partition`, where there are any.

        Raises:
            KafkaUnreachableError, TopicMissingError: The broker cannot say.
        """
        found = behind(read, self._admin.latest(self._topics))
        return {partition: records for partition, records in found.items() if records}

    def oldest_unread(self, read: Positions, behind: Mapping[str, int]) -> datetime | None:
        """When the oldest unread record was produced; None if no partition answered within 2 s.

        Reads one record per partition that is behind, without a consumer group.

        Raises:
            KafkaUnreachableError: No broker can be reached.
        """
        lagging = [
            TopicPartition(t, p, offset) for t, p, offset in read if behind.get(f"{t}-{p}", 0) > 0
        ]
        try:
            return self._first_timestamps(lagging) if lagging else None
        except KafkaException as error:
            raise KafkaUnreachableError(
                f"the oldest unread record cannot be read: {error}",
                where=self._kafka.bootstrap_servers,
                remedy="check that the brokers run and can be reached from here",
            ) from error

    def close(self) -> None:
        """Drop the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _first_timestamps(self, lagging: list[TopicPartition]) -> datetime | None:
        consumer = self._connected()
        consumer.assign(lagging)
        waiting = {(tp.topic, tp.partition) for tp in lagging}
        oldest: int | None = None
        deadline = time.monotonic() + _ANSWER_SECONDS
        while waiting and time.monotonic() < deadline:
            for message in consumer.consume(len(waiting), timeout=0.2):
                place = (str(message.topic()), int(message.partition() or 0))
                if message.error() or place not in waiting:
                    continue
                waiting.discard(place)
                consumer.pause([TopicPartition(*place)])
                millis = message.timestamp()[1]
                oldest = millis if oldest is None else min(oldest, millis)
        consumer.unassign()
        return None if oldest is None else datetime.fromtimestamp(oldest / 1000, UTC)

    def _connected(self) -> Consumer:
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    **self._kafka.client_options(),
                    "group.id": f"ingest-lag-{uuid.uuid4()}",  # required, but never joined
                    "enable.auto.commit": False,
                    "fetch.message.max.bytes": _FETCH_BYTES,
                    "fetch.wait.max.ms": 50,
                    "queued.min.messages": 1,
                }
            )
        return self._consumer
