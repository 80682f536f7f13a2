"""Every trouble that only a repair ends: afterwards each record is there exactly once.

An independent scan of topic against table says so (`assert_holds`), and the audit is clean.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from tenacity import Retrying, stop_after_delay, wait_fixed

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import (
    CheckpointDamagedError,
    DataProblem,
    LogDamagedError,
    OffsetsLostError,
    RepairUnderWayError,
)
from ingest_platform.maintain.audit.report import Kind
from ingest_platform.model.repair import Removal, Step, Symptom
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.faults.test_damaged_checkpoints import copy_of, replace_by
from ingest_platform_tests.ledger_tables import append, ledger
from ingest_platform_tests.repairs import CutOffError, plan_of, repair, repairing
from ingest_platform_tests.topic_records import (
    Place,
    as_records,
    delete_records,
    produce,
    recreate_topic,
)

pytestmark = [pytest.mark.slow, pytest.mark.fault]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

KILLING = "ingest_platform_tests.faults.killing_repair"


class Stage:
    """A topic of two partitions, and a stream that reads it."""

    def __init__(self, kafka: KafkaServer, topic: str, stream: DeployedStream) -> None:
        self.kafka, self.topic, self.stream = kafka, topic, stream
        self.places: list[Place] = []

    def feed(self, spark: SparkSession, good: int = 20, bad: int = 4) -> None:
        """Produce and ingest: one batch with rejected records in it."""
        self.produce(good, bad)
        self.stream.drain(spark)

    def produce(self, good: int = 20, bad: int = 4) -> None:
        """Records of both kinds, over both partitions."""
        begin = len(self.places)
        values = [json.dumps({"id": begin + n}).encode() for n in range(good)] + [b"{"] * bad
        servers = self.kafka.bootstrap_servers
        self.places += produce(servers, self.topic, as_records(values, partitions=2))

    def assert_whole(self, spark: SparkSession) -> None:
        """The stream goes on, and holds all that was ever produced, once."""
        self.feed(spark)
        self.stream.assert_holds(self.places)


@pytest.fixture
def stage(kafka: KafkaServer, topic: MakeTopic, deploy: Deploy) -> Stage:
    name = topic(2)
    return Stage(kafka, name, deploy(name, "id BIGINT"))


def interrupted(stage: Stage, spark: SparkSession) -> None:
    """A batch whose rejected records are committed and whose rows are not."""

    def reached(phase: str) -> None:
        if phase == "quarantine":
            raise CutOffError

    stage.produce()
    with pytest.raises(Exception, match="CutOffError"):
        stage.stream.drain(spark, reached)


@pytest.mark.long
def test_checkpoint_torn_rolled_back_and_lost(spark: SparkSession, stage: Stage) -> None:
    """The table is the truth (faults 22, 23): the next session goes on exactly where it ends."""
    stream = stage.stream
    stage.feed(spark)
    old = copy_of(stream)
    stage.feed(spark)
    assert plan_of(stream) is None

    replace_by(stream, old)
    with pytest.raises(CheckpointDamagedError, match=r"rolled back.*\n.*\n.*repair plan"):
        stream.drain(spark)
    outcome = repair(stream, spark)
    assert [f.symptom for f in outcome.plan.findings] == [Symptom.CHECKPOINT]
    assert (outcome.plan.undone, outcome.plan.table.rows) == (0, 0)
    stage.assert_whole(spark)

    good = copy_of(stream)
    newest = max(key for key in good if key.rpartition("/")[0].endswith("/offsets"))
    replace_by(stream, {**good, newest: good[newest][:40]})
    repair(stream, spark)
    stage.assert_whole(spark)

    interrupted(stage, spark)
    replace_by(stream, {})
    outcome = repair(stream, spark)
    assert outcome.plan.quarantine.rows == 4
    stage.assert_whole(spark)
    assert stream.objects.get("streams/stream/repair/000002/checkpoint/metadata")


@pytest.mark.long
def test_on_s3(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, s3: S3Bucket
) -> None:
    """Table, checkpoint and journal on S3: other classes, the same promise."""
    name = topic(2)
    stage = Stage(kafka, name, deploy(name, "id BIGINT", s3=s3))
    stage.feed(spark)
    old = copy_of(stage.stream)
    stage.feed(spark)
    replace_by(stage.stream, old)
    repair(stage.stream, spark)
    stage.assert_whole(spark)


def test_a_wrong_decode_is_replayed_from_its_time(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """What the wrong version wrote goes, in both tables; the right one reads it again."""
    name = topic(1)
    stream = deploy(name, "id BIGINT, at TIMESTAMP")
    values = [b'{"id": %d, "at": "2026-02-01T00:00:00Z"}' % n for n in range(12)]
    places = produce(kafka.bootstrap_servers, name, as_records(values))
    stream.drain(spark)
    time.sleep(0.01)
    deployed_at = datetime.now(UTC).isoformat()
    stream.edit(decode={"timestamp_format": "dd.MM.yyyy"})
    places += produce(kafka.bootstrap_servers, name, as_records(values))
    stream.drain(spark)
    assert len(stream.rejected()) == 12

    document = stream.file.read_text().replace("timestamp_format: dd.MM.yyyy", "")
    stream.file.write_text(document)
    outcome = repair(stream, spark, since=deployed_at)
    assert (outcome.plan.undone, outcome.plan.quarantine.rows) == (1, 12)
    stream.drain(spark)
    stream.assert_holds(places)
    assert stream.rejected() == []


@pytest.mark.long
def test_a_duplicated_range(spark: SparkSession, stage: Stage) -> None:
    """With a ledger of its own the log shows it; without one, only the data does."""
    stream = stage.stream
    stage.feed(spark)
    stage.feed(spark)
    path = stream.spec.table.path
    copies = stream.delta().to_pyarrow_table(filters=[("_kafka_offset", "<", 10)])
    again = ledger((0, 0, 10), (1, 0, 10), batch=0, session="x", topic=stage.topic)
    append(path, copies, again)
    outcome = repair(stream, spark)
    assert (outcome.plan.undone, outcome.plan.removal) == (1, Removal.RESTORE)
    stage.assert_whole(spark)

    write_deltalake(path, copies.slice(0, 5), mode="append")
    assert plan_of(stream) is None
    outcome = repair(stream, spark, data=True)
    assert {f.symptom for f in outcome.plan.findings} == {Symptom.DATA}
    stage.assert_whole(spark)


@pytest.mark.long
def test_a_table_that_was_restored(spark: SparkSession, stage: Stage) -> None:
    """Someone took the table back: the records since are read again."""
    stream = stage.stream
    stage.feed(spark)
    version = stream.delta().version()
    stage.feed(spark)
    DeltaTable.forPath(spark, stream.spec.table.path).restoreToVersion(version)
    with pytest.raises(CheckpointDamagedError, match="the table was rolled back"):
        stream.drain(spark)
    outcome = repair(stream, spark)
    assert outcome.plan.quarantine.rows == 4
    stage.assert_whole(spark)


@pytest.mark.long
def test_a_table_without_coordinates(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """The ledgers alone tell where it ends; rows leave it by RESTORE, if nobody else wrote since.

    A damaged checkpoint and a replay are mended; beside another writer a person has to decide.
    """
    name = topic(2)
    stage = Stage(kafka, name, deploy(name, table={"coordinates": False}))
    stream = stage.stream
    stage.feed(spark, bad=0)
    version = stream.delta().version()
    stage.feed(spark, bad=0)
    replace_by(stream, {})
    assert repair(stream, spark).plan.undone == 0
    stage.feed(spark, bad=0)
    outcome = repair(stream, spark, to_version=version)
    assert (outcome.plan.undone, outcome.plan.removal) == (2, Removal.RESTORE)
    stage.feed(spark, bad=0)

    write_deltalake(
        stream.spec.table.path, pa.table({"id": pa.array([-1], pa.int64())}), mode="append"
    )
    plan = plan_of(stream, to_version=version)
    assert plan
    (reason,) = plan.blocked
    assert "would also undo what other writers did in versions" in reason
    assert f"RESTORE the table to version {plan.record.kept_version} yourself" in reason
    with pytest.raises(DataProblem, match="needs a decision"):
        repairing(stream, lambda _: None).begin(plan)
    DeltaTable.forPath(spark, stream.spec.table.path).restoreToVersion(plan.record.kept_version)
    assert repair(stream, spark).plan.undone == 0
    stream.drain(spark)
    held = stream.delta().to_pyarrow_table()["id"].to_pylist()
    assert sorted(held) == list(range(len(stage.places)))


@pytest.mark.long
def test_a_topic_made_anew(spark: SparkSession, stage: Stage) -> None:
    """Stop, and let a person say so (fault 12); the old topic's rows stay."""
    stream, servers = stage.stream, stage.kafka.bootstrap_servers
    stage.feed(spark)
    stage.feed(spark)
    recreate_topic(servers, stage.topic, 2)
    stage.produce(good=6, bad=2)
    with pytest.raises(OffsetsLostError, match="was read up to 24, but ends at 4"):
        stream.drain(spark)
    plan = plan_of(stream)
    assert plan
    assert Symptom.TOPIC_RECREATED in {f.symptom for f in plan.findings}
    with pytest.raises(DataProblem, match="--topic-recreated"):
        repairing(stream, lambda _: None).begin(plan)
    repair(stream, spark, topic_recreated=True)
    stage.assert_whole(spark)
    stage.assert_whole(spark)


def test_retention_passed_the_checkpoint(spark: SparkSession, stage: Stage) -> None:
    """The exact gap is told, and given up only by a person's word (fault 11)."""
    stream, servers = stage.stream, stage.kafka.bootstrap_servers
    stage.feed(spark)
    unread = len(stage.places)
    stage.produce()
    delete_records(servers, stage.topic, {0: 20, 1: 12})
    lost = {p for p in stage.places[unread:] if p[1] == 0 and p[2] < 20}
    stage.places = [p for p in stage.places if p not in lost]
    with pytest.raises(OffsetsLostError, match=rf": {stage.topic}-0 \[12, 20\) is deleted\n"):
        stream.drain(spark)
    plan = plan_of(stream)
    assert plan
    assert plan.record.accepted.to_ledger() == {stage.topic: {"0": [12, 20]}}
    with pytest.raises(DataProblem, match=r"-0 \[12, 20\).*--accept-gap"):
        repairing(stream, lambda _: None).begin(plan)
    repair(stream, spark, accept_gap=True)
    stage.assert_whole(spark)
    accepted = [f for f in stream.audit().findings if f.kind is Kind.ACCEPTED_GAP]
    assert [(f.partition, f.start, f.until) for f in accepted] == [(0, 12, 20)]


@pytest.mark.long
def test_no_driver_starts_beside_a_repair(spark: SparkSession, stage: Stage) -> None:
    """Neither a supervisor's nor one by hand: it would commit what is being taken out."""
    stream = stage.stream
    stage.feed(spark)
    version = stream.delta().version()
    stage.feed(spark)

    def drive(_: int) -> None:
        with pytest.raises(RepairUnderWayError, match="a repair by test"):
            stream.drain(spark)
        raise CutOffError

    plan = plan_of(stream, to_version=version)
    assert plan
    with pytest.raises(CutOffError):
        repairing(stream, drive).begin(plan)
    with pytest.raises(RepairUnderWayError):
        stream.drain(spark)
    with pytest.raises(DataProblem, match="may have taken rows out"):
        repairing(stream, drive).abandon(plan)
    repair(stream, spark, to_version=version)
    stage.assert_whole(spark)


@pytest.mark.long
def test_a_missing_log_entry_is_told(spark: SparkSession, stage: Stage) -> None:
    """A hole in the log (fault 24) is an error that names it; no repair goes over it."""
    stream = stage.stream
    stage.feed(spark)
    stage.feed(spark)
    entry = Path(stream.spec.table.path, "_delta_log", f"{1:020}.json")
    kept = entry.read_bytes()
    entry.unlink()
    with pytest.raises(LogDamagedError, match=r"missing between 0+\.json and 0+2\.json"):
        stream.drain(spark)
    assert Kind.MISSING_ENTRY in {f.kind for f in stream.audit().errors}
    entry.write_bytes(kept)
    stage.assert_whole(spark)


@pytest.mark.long
def test_killed_after_each_step(spark: SparkSession, stage: Stage) -> None:
    """Whoever calls it again ends in the same state (fault 27), however often it was killed."""
    stream = stage.stream
    stage.feed(spark)
    version = stream.delta().version()
    stage.feed(spark)
    interrupted(stage, spark)
    wishes = json.dumps({"to_version": version})
    for step in Step:
        if step is not Step.VERIFIED:
            environ = {**stream.environ, "KILL_AT": step, "WISHES": wishes}
            doomed = replace(stream, environ=environ).start(module=KILLING)
            try:
                assert doomed.popen.wait(120) == -signal.SIGKILL, doomed.log_tail()
            finally:
                doomed.stop()
        if step < Step.RELEASED:
            with pytest.raises((RepairUnderWayError, CheckpointDamagedError)):
                stream.drain(spark)

    surgery = repairing(stream, lambda generation: pytest.fail(f"again under {generation}"))
    current = surgery.patient.journal.open_repair()
    assert current
    assert surgery.go_on(current).report.clean
    assert surgery.patient.journal.open_repair() is None
    records = [c.repair for c in TableLog(stream.spec.table.path, stream.storage).commits(-1)]
    assert {r.repair for r in records if r} == {1}
    assert surgery.reach.stores.control.read().pause is None
    stage.assert_whole(spark)


@pytest.mark.long
def test_the_command_stops_repairs_and_starts(spark: SparkSession, stage: Stage) -> None:
    """As an operator does it: a driver runs, a decoder was wrong, one command mends it."""
    stream = stage.stream
    stage.feed(spark)
    version = stream.delta().version()
    driver = stream.start()
    try:
        stage.produce()
        await_rows(stream, len(stage.places) - 8)
        command = ("repair", "apply", str(stream.file), "--to-version", str(version), "--yes")
        done = subprocess.run(
            [sys.executable, "-m", "ingest_platform.cli", *command, "--json"],
            env=dict(stream.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outcome = json.loads(done.stdout)
        assert outcome["plan"]["undone"] == 1
        assert outcome["audit"]["clean"]
        assert outcome["started"]
        assert driver.popen.wait(10) == 0
        stage.produce()
        await_rows(stream, len(stage.places) - 12)
    finally:
        driver.stop()
        status = stream.status()
        if status and status.runs_at.pid != os.getpid():
            LocalLauncher().kill(status.runs_at)
    stream.assert_holds(stage.places)


def await_rows(stream: DeployedStream, rows: int) -> None:
    """Until the table holds so many rows."""
    for attempt in Retrying(stop=stop_after_delay(90), wait=wait_fixed(0.5), reraise=True):
        with attempt:
            assert len(stream.rows()) == rows
