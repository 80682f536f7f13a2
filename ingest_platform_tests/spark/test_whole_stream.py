"""From Kafka to table and quarantine, through the driver itself."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]


def ids(numbers: range) -> list[bytes]:
    return [json.dumps({"id": n}).encode() for n in numbers]


def test_smoke(spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy) -> None:
    name = topic(3)
    stream = deploy(name)
    places = produce(kafka.bootstrap_servers, name, as_records([*ids(range(50)), b"{", b""], 3))
    stream.drain(spark)
    stream.assert_holds(places)
    places += produce(kafka.bootstrap_servers, name, as_records([*ids(range(50)), b"{", b""], 3))
    stream.drain(spark)
    stream.assert_holds(places)
    print(stream.status())
