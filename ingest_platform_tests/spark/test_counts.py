"""The counts of a batch balance, or the batch is not committed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import LedgerImbalanceError
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]
TRANSFORMS = "ingest_platform_tests.spark.transforms"


@pytest.mark.parametrize("tr", ["with_another_column", "with_another_type", "without_a_column", "failing", "with_name_in_capitals"])
def test_transforms(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, tr
) -> None:
    """One bad record among good ones must cost that record only, and nobody may lose its bytes."""
    name = topic()
    stream = deploy(name, "id BIGINT, name STRING", transform=f"{TRANSFORMS}:{tr}")
    places = produce(kafka.bootstrap_servers, name, as_records([b'{"id":1,"name":"a"}', b"{"]))
    try:
        stream.drain(spark)
    except Exception as e:
        print("ERROR", type(e), str(e)[:300])
    try:
        print("ROWS", stream.rows())
    except Exception as e: print("READ", str(e)[:300])
    assert 0
