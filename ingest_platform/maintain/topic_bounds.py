"""Which offsets the brokers hold of a stream's topics."""

from __future__ import annotations

from collections.abc import Mapping

from ingest_platform.adapters.kafka_admin import KafkaAdmin
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.spec import KafkaEnvironment, SourceSpec


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
    begins, ends = admin.earliest(source.all_topics), admin.latest(source.all_topics)
    return {
        (topic, partition): BrokerRange(begins.get(topic, partition) or 0, end)
        for topic, partition, end in ends
    }
