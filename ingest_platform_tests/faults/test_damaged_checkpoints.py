"""A checkpoint that is not what it was: refused, nothing changed, never reset by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import CheckpointDamagedError
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

RECORDS = [b'{"id":%d}' % n for n in range(30)]


def copy_of(stream: DeployedStream) -> dict[str, bytes]:
    """The checkpoint's files."""
    objects = stream.objects
    found = {key: objects.get(key) for key in objects.list(stream.checkpoint)}
    return {key: data for key, data in found.items() if data is not None}


def replace_by(stream: DeployedStream, files: dict[str, bytes]) -> None:
    """Make the checkpoint consist of `files`."""
    for key in stream.objects.list(stream.checkpoint):
        stream.objects.delete(key)
    for key, data in files.items():
        stream.objects.put(key, data)


def refused(stream: DeployedStream, spark: SparkSession, finding: str) -> CheckpointDamagedError:
    """The driver's error; neither table nor checkpoint has changed."""
    rows, files = stream.rows(), copy_of(stream)
    with pytest.raises(CheckpointDamagedError, match=finding) as error:
        stream.drain(spark)
    assert stream.rows() == rows
    assert copy_of(stream) == files
    return error.value


def test_lost_torn_and_rolled_back(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Starting over would double, skipping on would lose (faults 22, 23); only a person decides."""
    name = topic(2)
    stream = deploy(name, "id BIGINT")
    places = produce(kafka.bootstrap_servers, name, as_records(RECORDS, partitions=2))
    stream.drain(spark)
    old = copy_of(stream)
    places += produce(kafka.bootstrap_servers, name, as_records(RECORDS, partitions=2))
    stream.drain(spark)
    good = copy_of(stream)

    newest = max(key for key in good if key.rpartition("/")[0].endswith("/offsets"))
    replace_by(stream, {**good, newest: good[newest][:40]})
    refused(stream, spark, r"offsets/\d+")

    replace_by(stream, old)
    refused(stream, spark, "rolled back")

    replace_by(stream, {})
    lost = refused(stream, spark, "checkpoint is missing")
    assert f'{{"{name}": {{"0": 30, "1": 30}}}}' in lost.remedy

    stream.edit(source={"starting_offsets": {name: {"0": 30, "1": 29}}})
    refused(stream, spark, "checkpoint is missing")

    stream.edit(source={"starting_offsets": {name: {"0": 30, "1": 30}}})
    places += produce(kafka.bootstrap_servers, name, as_records(RECORDS[:4], partitions=2))
    stream.drain(spark)
    stream.assert_holds(places)
    assert len({ledger.session for ledger in stream.ledgers()}) == 2
