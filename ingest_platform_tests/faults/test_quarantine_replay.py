"""Rejected records through a corrected schema: each becomes a row once, whatever is killed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from ingest_platform.cli import cli
from ingest_platform.drivers.replay import replay
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import RepairUnderWayError
from ingest_platform.maintain.audit.report import Kind
from ingest_platform.stream.replay import Replayed
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.repairs import plan_of, repair, repairing
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

GOOD = [b'{"id": %d, "at": "2026-02-01T00:00:00Z"}' % n for n in range(10)]
MENDED_LATER = [b'{"id": %d, "at": "01.02.2026 00:00"}' % n for n in range(6)]
NEVER = [b"{", b"\xff", b""]


class KilledError(RuntimeError):
    """Ends a replay between its two commits."""


def moved(stream: DeployedStream, spark: SparkSession) -> Replayed:
    return replay(spark, stream.spec, stream.storage)


def test_each_becomes_a_row_once(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """The audit's account holds all the while: the batch's ledger counts each of them anyway."""
    name = topic(1)
    stream = deploy(name, "id BIGINT, at TIMESTAMP")
    values = [*GOOD, *MENDED_LATER, *NEVER]
    places = produce(kafka.bootstrap_servers, name, as_records(values))
    stream.drain(spark)
    assert moved(stream, spark) == Replayed(rows=0, left=9)

    stream.edit(decode={"timestamp_format": "dd.MM.yyyy HH:mm"})

    def killed(commit: str) -> None:
        if commit == "table":
            raise KilledError

    with pytest.raises(KilledError):
        replay(spark, stream.spec, stream.storage, killed)
    assert Kind.DATA_DOUBLED in {f.kind for f in stream.audit().errors}
    assert moved(stream, spark) == Replayed(rows=0, left=3, finished=True)
    stream.assert_holds(places)
    assert Kind.REPLAYED in {f.kind for f in stream.audit().findings}
    assert sorted(row["_kafka_offset"] for row in stream.rows()) == list(range(16))

    listed = CliRunner().invoke(cli, ["quarantine", "list", str(stream.file), "--json"])
    groups = json.loads(listed.stdout)["groups"]
    assert {g["reason"]: g["records"] for g in groups} == {
        "undecodable": 1,
        "not_utf8": 1,
        "empty_value": 1,
    }


@pytest.mark.long
def test_open_batches_and_repairs_are_left_alone(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """An open batch is decoded again by the driver; a repair takes out what a replay would move."""
    name = topic(1)
    stream = deploy(name, "id BIGINT, at TIMESTAMP")
    places = produce(kafka.bootstrap_servers, name, as_records(GOOD))
    stream.drain(spark)
    places += produce(kafka.bootstrap_servers, name, as_records(MENDED_LATER))

    def cut_off(phase: str) -> None:
        if phase == "quarantine":
            raise KilledError

    with pytest.raises(Exception, match="KilledError"):
        stream.drain(spark, cut_off)
    stream.edit(decode={"timestamp_format": "dd.MM.yyyy HH:mm"})
    assert moved(stream, spark) == Replayed(rows=0, left=6)
    stream.drain(spark)
    stream.assert_holds(places)

    def during_repair(_: int) -> None:
        with pytest.raises(RepairUnderWayError):
            moved(stream, spark)
        raise KilledError

    plan = plan_of(stream, to_version=0)
    assert plan
    surgery = repairing(stream, during_repair)
    with pytest.raises(KilledError):
        surgery.begin(plan)
    repair(stream, spark, to_version=0)
    stream.drain(spark)
    stream.assert_holds(places)
