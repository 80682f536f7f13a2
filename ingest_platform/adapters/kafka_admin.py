"""Questions to a Kafka cluster: does the topic exist, which offsets does it hold, for how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,  # pyright: ignore[reportPrivateImportUsage]
    OffsetSpec,  # pyright: ignore[reportPrivateImportUsage]
)

from ingest_platform.errors import (
    IngestError,
    KafkaDeniedError,
    KafkaUnreachableError,
    TopicMissingError,
)
from ingest_platform.model.offsets import Positions
from ingest_platform.spec.environment import KafkaEnvironment

_MISSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # librdkafka's own code for the same
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}
_REFUSED = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
_QUIET = {
    "log_level": 0,  # librdkafka writes to stderr; what matters arrives as an error
    "socket.connection.setup.timeout.ms": 5000,
    "client.id": "ingest-platform-admin",
}


@dataclass(frozen=True)
class Retention:
    """How long a topic keeps records, and how large they may be. None: without limit."""

    milliseconds: int | None
    bytes_per_partition: int | None
    compacted: bool
    message_bytes: int | None = None


class KafkaAdmin:
    """Read-only questions to one cluster.

    Every method raises `KafkaUnreachableError` when no broker answers in `timeout` seconds,
    `KafkaDeniedError` when one answers but refuses the login, and `TopicMissingError` for a topic
    that does not exist or that this principal may not see.
    """

    def __init__(self, kafka: KafkaEnvironment, timeout: float = 10.0) -> None:
        self._timeout = timeout
        self._servers = kafka.bootstrap_servers
        self._refusal: str | None = None
        options: dict[str, Any] = {**kafka.client_options(), **_QUIET, "error_cb": self._note}
        self._client = AdminClient(options)

    def exists(self, topic: str) -> bool:
        """Whether the topic exists and may be seen."""
        try:
            self.partitions(topic)
        except TopicMissingError:
            return False
        return True

    def partitions(self, topic: str) -> list[int]:
        """The topic's partitions, in order. Asking does not create the topic."""
        with self._errors_of(topic):
            asked = self._client.describe_topics(
                TopicCollection([topic]), request_timeout=self._timeout
            )
            return sorted(p.id for p in self._answers(asked)[topic].partitions)

    def earliest(self, topics: Iterable[str]) -> Positions:
        """The oldest offset that each partition still holds."""
        return self._offsets(topics, OffsetSpec.earliest())

    def latest(self, topics: Iterable[str]) -> Positions:
        """The offset that each partition's next record will get."""
        return self._offsets(topics, OffsetSpec.latest())

    def retention(self, topic: str) -> Retention:
        """How long the topic keeps records."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        with self._errors_of(topic):
            asked = self._client.describe_configs([resource], request_timeout=self._timeout)
            config = {name: e.value for name, e in self._answers(asked)[resource].items()}
        return Retention(
            milliseconds=_limit(config.get("retention.ms")),
            bytes_per_partition=_limit(config.get("retention.bytes")),
            compacted="compact" in (config.get("cleanup.policy") or ""),
            message_bytes=_limit(config.get("max.message.bytes")),
        )

    def _offsets(self, topics: Iterable[str], spec: Any) -> Positions:
        found: dict[str, dict[int, int]] = {}
        for topic in topics:
            wanted = {TopicPartition(topic, p): spec for p in self.partitions(topic)}
            with self._errors_of(topic):
                asked = self._client.list_offsets(wanted, request_timeout=self._timeout)
                found[topic] = {p.partition: r.offset for p, r in self._answers(asked).items()}
        return Positions(found)

    def _answers(self, asked: Mapping[Any, Future[Any]]) -> dict[Any, Any]:
        return {key: future.result(timeout=self._timeout + 1) for key, future in asked.items()}

    def _note(self, error: KafkaError) -> None:
        """A refused login only reaches this callback; the request itself just times out."""
        if error.code() in _REFUSED:
            self._refusal = error.str()

    @contextmanager
    def _errors_of(self, topic: str) -> Iterator[None]:
        self._refusal = None
        try:
            yield
        except TimeoutError as error:
            raise self._unreachable("no answer in time") from error
        except KafkaException as error:
            raise self._error(error.args[0], topic) from error

    def _error(self, error: KafkaError, topic: str) -> IngestError:
        if error.code() not in _MISSING:
            self._note(error)
            return self._unreachable(error.str())
        return TopicMissingError(
            f"topic {topic!r} does not exist, or these credentials may not see it",
            where=self._servers,
            remedy=f"create it (kafka-topics.sh --create --topic {topic}) or mend `source.topic`",
        )

    def _unreachable(self, reason: str) -> KafkaUnreachableError:
        self._client.poll(0)  # calls `_note`
        if self._refusal is not None:
            return KafkaDeniedError(
                f"Kafka refuses the login: {self._refusal}",
                where=self._servers,
                remedy="check user, password, mechanism and CA file (KAFKA_SASL_*, KAFKA_SSL_*)",
            )
        return KafkaUnreachableError(
            f"Kafka does not answer: {reason}",
            where=self._servers,
            remedy="check KAFKA_BOOTSTRAP_SERVERS, the network and the security settings",
        )


def behind(read: Positions, latest: Positions) -> dict[str, int]:
    """Offsets not yet read, by `topic-partition`; a partition never read counts from 0."""
    return {
        f"{topic}-{partition}": max(0, end - (read.get(topic, partition) or 0))
        for topic, partition, end in latest
    }


def _limit(text: str | None) -> int | None:
    return None if text is None or int(text) < 0 else int(text)
