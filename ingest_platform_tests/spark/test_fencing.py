"""A driver that was replaced while it was in a batch: it ends, and the batch is there once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import DataProblem, LeaseLostError
from ingest_platform.stream.transaction import Transaction
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

VALUES = [b'{"id":1}', b"{", b'{"id":2}']


def at(phase: str, action: Callable[[], object]) -> Callable[[str], None]:
    """Does something once, when the first batch reaches the end of `phase`."""
    waiting = [action]

    def reached(name: str) -> None:
        if name == phase and waiting:
            waiting.pop()()

    return reached


@pytest.mark.parametrize("phase", ["write", "quarantine"])
def test_replaced_driver_commits_nothing(
    spark: SparkSession,
    kafka: KafkaServer,
    topic: MakeTopic,
    deploy: Deploy,
    s3: S3Bucket,
    phase: str,
) -> None:
    """It may have hung for an hour: its successor has read the same records long since."""
    name = topic()
    stream = deploy(name, s3=s3)
    places = produce(kafka.bootstrap_servers, name, as_records(VALUES))

    def take_over() -> None:
        LeaseStore(stream.objects, stream.spec.name).take("other:1", "stream", datetime.now(UTC))

    with pytest.raises(LeaseLostError, match="generation 1 was superseded") as lost:
        stream.drain(spark, at(phase, take_over))
    assert lost.value.exit_code == 3
    assert stream.ledgers() == []
    assert len(stream.rejected()) == (0 if phase == "write" else 1)
    status = stream.status()
    assert status is not None
    assert status.error is None, "the status is the successor's to write"

    stream.drain(spark)
    stream.assert_holds(places)


def test_batch_that_another_driver_committed_meanwhile(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Leases are asked before a commit, not in it; the commit itself must refuse the second one."""
    name = topic()
    stream = deploy(name)
    produce(kafka.bootstrap_servers, name, as_records(VALUES))

    def commit_the_same_batch() -> None:
        lineage = stream.objects.get(f"{stream.checkpoint}/metadata") or b""
        session = lineage.decode().split('"')[3]
        assert Transaction(spark, stream.spec.table.path).commit(session, 0, "the other's") > 0

    with pytest.raises(DataProblem, match="another driver committed this batch first"):
        stream.drain(spark, at("quarantine", commit_the_same_batch))
    assert stream.rows() == []
