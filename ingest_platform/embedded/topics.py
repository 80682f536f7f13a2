"""Make topics, for the demo and tests."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingest_platform.errors import KafkaUnreachableError


def ensure_topic(
    bootstrap_servers: str,
    name: str,
    *,
    partitions: int,
    config: Mapping[str, str] | None = None,
    timeout: float = 20.0,
) -> None:
    """Make a topic, if it is not there; one that is there keeps its partitions.

    Args:
        bootstrap_servers: `host:port`, comma-separated.
        name: Topic.
        partitions: Number of partitions.
        config: Topic settings by name, such as `retention.ms`.
        timeout: In seconds.

    Raises:
        KafkaUnreachableError: The broker does not answer.
        KafkaException: It refuses: a bad name, a bad setting, or no right to do it.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    topic = NewTopic(
        name, num_partitions=partitions, replication_factor=1, config=dict(config or {})
    )
    future = admin.create_topics([topic], request_timeout=timeout)[name]
    try:
        future.result(timeout + 5)
    except KafkaException as e:
        code = e.args[0].code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if code in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            raise _unreachable(bootstrap_servers, name, timeout) from e
        raise
    except TimeoutError as e:
        raise _unreachable(bootstrap_servers, name, timeout) from e


def _unreachable(bootstrap_servers: str, topic: str, timeout: float) -> KafkaUnreachableError:
    return KafkaUnreachableError(
        f"no broker answered within {timeout:g} s while topic {topic!r} was made",
        where=bootstrap_servers,
        remedy="check that the broker runs and that the address is right",
    )
