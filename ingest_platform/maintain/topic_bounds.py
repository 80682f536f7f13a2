"""Which offsets the brokers hold of a stream's topics."""

from __future__ import annotations

from collections.abc import Mapping

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from ingest_platform.adapters.kafka_admin import KafkaAdmin
from ingest_platform.errors import KafkaUnreachableError
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.model.offsets import Positions
from ingest_platform.spec import KafkaEnvironment, SourceSpec

_PATIENCE_SECONDS = 5.0  # a broker that does not answer at all takes longer for its first answer


def kafka_of(source: SourceSpec, environ: Mapping[str, str]) -> KafkaEnvironment:
    """How to reach a stream's cluster; the spec's `bootstrap_servers` wins.

    Raises:
        SpecError: A login is asked for but its variables are not set.
    """
    kafka = KafkaEnvironment.from_env(environ, source.environment_prefix)
    if source.bootstrap_servers:
        return kafka.model_copy(update={"bootstrap_servers": source.bootstrap_servers})
    return kafka


def topic_bounds(
    source: SourceSpec, environ: Mapping[str, str]
) -> dict[tuple[str, int], BrokerRange]:
    """The bounds of every partition, by topic and partition.

    Raises:
        KafkaUnreachableError, TopicMissingError: The brokers cannot say.
    """
    admin = KafkaAdmin(kafka_of(source, environ))
    return {
        (topic, partition): bounds
        for topic in source.all_topics
        for partition, bounds in bounds_of(admin, topic).items()
    }


def bounds_of(admin: KafkaAdmin, topic: str) -> dict[int, BrokerRange]:
    """The bounds of one topic's partitions.

    Tried again for a few seconds: while partitions get their leaders, of a new topic or when a
    broker restarts, brokers answer at once that it is not them.

    Raises:
        KafkaUnreachableError, TopicMissingError: The brokers cannot say.
    """
    patiently = Retrying(
        retry=retry_if_exception_type(KafkaUnreachableError),
        stop=stop_after_delay(_PATIENCE_SECONDS),
        wait=wait_fixed(0.25),
        reraise=True,
    )
    begins: Positions = patiently(admin.earliest, [topic])
    ends: Positions = patiently(admin.latest, [topic])
    return {p: BrokerRange(begins.get(topic, p) or 0, end) for _, p, end in ends}
