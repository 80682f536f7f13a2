"""A driver that ends at the worst moment: nothing may be lost and nothing may be there twice."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.faults.killing_driver import VARIABLE
from ingest_platform_tests.topic_records import Place, as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

KILLING = "ingest_platform_tests.faults.killing_driver"
SCHEMA = "id BIGINT, name STRING"
EXIT_SECONDS = 120


def mixed(count: int) -> list[bytes]:
    """Good records, with a bad one among every ten."""
    good = [json.dumps({"id": n, "name": f"n{n}"}).encode() for n in range(count)]
    return [b'{"id": "no number"}' if n % 10 == 3 else record for n, record in enumerate(good)]


def start_small_batches(
    kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, s3: S3Bucket | None = None
) -> tuple[DeployedStream, list[Place]]:
    """A stream of three partitions with 240 records, which it reads in three batches or more."""
    name = topic(3)
    places = produce(kafka.bootstrap_servers, name, as_records(mixed(240), partitions=3))
    source = {"topic": name, "max_offsets_per_trigger": 90}
    return deploy(name, SCHEMA, s3=s3, source=source), places


def kill_at(stream: DeployedStream, moment: str) -> None:
    """Run the driver until it kills itself at `moment`."""
    doomed = replace(stream, environ={**stream.environ, VARIABLE: moment})
    driver = doomed.start(module=KILLING)
    try:
        assert driver.popen.wait(EXIT_SECONDS) == -signal.SIGKILL, driver.log_tail()
    finally:
        driver.stop()


@pytest.mark.parametrize("phase", ["plan", "begin", "write", "quarantine", "commit"])
def test_sigkill_at_each_point_of_a_batch(
    phase: str, spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Between any two writes of a batch a process may end (fault 1); the replay must tell which."""
    stream, places = start_small_batches(kafka, topic, deploy)
    kill_at(stream, f"{phase}:1")
    stream.drain(spark)
    stream.assert_holds(places)
    assert len({ledger.session for ledger in stream.ledgers()}) == 1


def test_sigkill_with_table_and_checkpoint_on_s3(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, s3: S3Bucket
) -> None:
    """On S3 other classes write checkpoint, log and files; the promise is the same."""
    stream, places = start_small_batches(kafka, topic, deploy, s3)
    kill_at(stream, "commit:1")
    stream.drain(spark)
    stream.assert_holds(places)


@pytest.mark.parametrize("still_rejected", [0, 1], ids=["all mended", "one still bad"])
def test_decoder_mended_between_crash_and_replay(
    still_rejected: int, spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """What the old decoder rejected and the new one accepts must not be in both tables."""
    name = topic(1)
    values = mixed(40) + [b"{"] * still_rejected
    places = produce(kafka.bootstrap_servers, name, as_records(values))
    stream = deploy(name, "id BIGINT")
    kill_at(stream, "quarantine:0")
    assert len(stream.rejected()) == 4 + still_rejected
    stream.edit(decode={"schema": "id STRING"}, table={"path": f"{stream.spec.table.path}_v2"})
    stream.edit(table={"quarantine_path": stream.spec.table.quarantine.replace("_v2", "")})
    stream.drain(spark)
    assert len(stream.rejected()) == still_rejected
    stream.assert_holds(places)
