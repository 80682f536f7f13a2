"""Compaction and vacuum beside everyone else on one table, with real drivers."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.embedded.process import ChildProcess, spawn
from ingest_platform.embedded.s3 import S3Server
from ingest_platform.maintain.compaction.conflicts import conflict_of
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.lake_tables import LakeTable
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long, pytest.mark.timeout(590)]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

DRIVER = "ingest_platform.drivers.maintenance"
ROUNDS, MOST_ROUNDS = 5, 60  # of a user's DELETE and MERGE
SETTLED = {"compaction": {"settle": "0s", "min_files": 1}, "driver_memory": "1g"}


def process(environ: dict[str, str], log: Path, *command: str) -> ChildProcess:
    """Start a module of the platform as a process of its own."""
    return spawn([sys.executable, "-m", *command], name=command[0], log=log, env=environ)


def compaction(stream: DeployedStream) -> ChildProcess:
    """Start the maintenance driver for the stream's table, as a run of the schedule does."""
    target = f"{stream.spec.name}={stream.file}"
    logs = stream.file.parent / "compaction"
    log = logs / "driver.log"
    return process(dict(stream.environ), log, DRIVER, "compact", target, "--log-dir", str(logs))


@contextmanager
def ended(*children: ChildProcess) -> Iterator[None]:
    """However the block ends, so do the processes."""
    try:
        yield
    finally:
        for child in children:
            child.stop()


def until(what: Callable[[], bool], seconds: float = 240) -> None:
    """Poll until `what` holds."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.2)


class Reader(threading.Thread):
    """Reads the whole table again and again with delta-rs; each read must be a consistent one."""

    def __init__(self, table: LakeTable) -> None:
        super().__init__(daemon=True)
        self._table = table
        self._done = threading.Event()
        self.reads = 0
        self.trouble: list[str] = []

    def run(self) -> None:
        while not self._done.wait(0.5):  # without a pause it would take a core from the writers
            try:
                ids = self._table.delta().to_pyarrow_table(columns=["id"]).column("id").to_pylist()
            except Exception as error:  # noqa: BLE001 - told by the test
                self.trouble.append(f"{type(error).__name__}: {error}"[:500])
                continue
            twice = [n for n, count in Counter(ids).items() if count > 1]
            if twice:
                self.trouble.append(f"read twice: {twice[:5]}")
            self.reads += 1

    def close(self) -> None:
        self._done.set()
        self.join(30)


class Producer(threading.Thread):
    """Sends records with rising ids until it is closed."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._servers, self._topic = servers, topic
        self._done = threading.Event()
        self.sent = 0

    def run(self) -> None:
        while not self._done.wait(1):
            ids = range(self.sent, self.sent + 40)
            values = [json.dumps({"id": n, "tag": "new"}).encode() for n in ids]
            produce(self._servers, self._topic, as_records(values, partitions=2))
            self.sent += len(values)

    def close(self) -> None:
        self._done.set()
        self.join(60)


class User(ABC):
    """Someone's own statements on the table; those that lose to another writer are repeated."""

    def __init__(self) -> None:
        self.lost: list[str] = []

    @abstractmethod
    def delete(self, n: int) -> None:
        """Take row `n` out."""

    @abstractmethod
    def merge(self, n: int) -> None:
        """Set the tag of row `n`."""

    @abstractmethod
    def conflict(self, error: Exception) -> str | None:
        """The kind of conflict that an error is; None if it is none."""

    def run(self, statement: Callable[[int], None], n: int) -> None:
        for _ in range(20):
            try:
                statement(n)
            except Exception as error:
                kind = self.conflict(error)
                if kind is None:
                    raise
                self.lost.append(kind)
            else:
                return
        raise AssertionError(f"lost 20 times: {Counter(self.lost)}")


class SparkUser(User):
    """With a driver of their own, which is this test's."""

    def __init__(self, spark: SparkSession, table: LakeTable) -> None:
        super().__init__()
        self._sql, self._table = spark.sql, f"delta.`{table.path}`"

    def delete(self, n: int) -> None:
        self._sql(f"DELETE FROM {self._table} WHERE id = {n}")

    def merge(self, n: int) -> None:
        self._sql(
            f"MERGE INTO {self._table} t USING (SELECT CAST({n} AS BIGINT) AS id) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.tag = 'seen'"
        )

    def conflict(self, error: Exception) -> str | None:
        return conflict_of(error)


class DeltaRsUser(User):
    """With another engine, whose commits share no code with Spark's."""

    def __init__(self, table: LakeTable) -> None:
        super().__init__()
        self._table = table

    def delete(self, n: int) -> None:
        self._table.delta().delete(f"id = {n}")

    def merge(self, n: int) -> None:
        rows = pa.table({"id": pa.array([n], pa.int64())})
        merger = self._table.delta().merge(
            rows, predicate="t.id = s.id", source_alias="s", target_alias="t"
        )
        merger.when_matched_update({"tag": "'seen'"}).execute()

    def conflict(self, error: Exception) -> str | None:
        return str(error)[:200] if isinstance(error, CommitFailedError) else None


def old_orphan(stream: DeployedStream, bucket: S3Bucket | None, server: S3Server) -> Path:
    """A file that a killed writer left in the table eight days ago, as the disk has it."""
    path = Path(stream.spec.table.path)
    if bucket:
        path = server.on_disk(bucket.bucket) / stream.spec.table.path.split("/", 3)[-1]
    orphan = path / "part-of-a-killed-writer.parquet"
    orphan.write_bytes(b"x")
    eight_days_ago = time.time() - 8 * 86_400
    os.utime(orphan, times=(eight_days_ago, eight_days_ago))
    return orphan


def command(stream: DeployedStream, *arguments: str) -> ChildProcess:
    """Start the command line, with the stream's file as its last argument."""
    log = stream.file.parent / f"{arguments[0]}.log"
    cli = "ingest_platform.cli"
    return process(dict(stream.environ), log, cli, *arguments, str(stream.file))


def conflicts(driver: ChildProcess) -> list[str]:
    """The kinds of conflict that a compaction's log tells of, one for each that it lost."""
    told = driver.log.read_text()
    return re.findall(r"another writer was first \((\w+)\)", told)


@pytest.mark.parametrize("engine", ["delta-rs", "spark"])
def test_stream_compaction_vacuum_user_and_reader_at_once(
    request: pytest.FixtureRequest,
    kafka: KafkaServer,
    topic: MakeTopic,
    deploy: Deploy,
    s3_server: S3Server,
    bucket: S3Bucket | None,
    engine: str,
) -> None:
    """Rows are those of a serial run (fault 26): each loser repeated its work or yielded."""
    name = topic(2)
    # A MERGE that reads all of the table loses to every batch that commits meanwhile, so the
    # trigger is longer than one takes.
    stream = deploy(name, "id BIGINT, tag STRING", s3=bucket, trigger="5s", maintenance=SETTLED)
    table = LakeTable(stream.spec.table.path, bucket)
    producer, reader = Producer(kafka.bootstrap_servers, name), Reader(table)
    deleted, merged = set[int](), set[int]()
    user = DeltaRsUser(table)
    if engine == "spark":
        user = SparkUser(request.getfixturevalue("spark"), table)
    driver = stream.start()
    with ended(driver):
        producer.start()
        until(lambda: bool((found := stream.status()) and found.last_batch))
        until(lambda: len(table.rows()) > 100)
        reader.start()
        orphan = old_orphan(stream, bucket, s3_server)
        vacuum, first = command(stream, "vacuum", "--full"), compaction(stream)
        with ended(vacuum, first):
            for n in itertools.count():
                # As long as the others are at it; someone who never ends might keep them from it.
                busy = vacuum.is_running() or first.is_running()
                if n >= ROUNDS and (n >= MOST_ROUNDS or not busy):
                    break
                held = [row["id"] for row in table.rows()]
                victim, target = held[len(held) // 3], held[-20]
                user.run(user.delete, victim)
                deleted.add(victim)
                user.run(user.merge, target)
                merged.add(target)
            # It may have lost each time; now the user is done, and only the stream goes on.
            assert first.popen.wait(240) == 0, first.log_tail()
            assert vacuum.popen.wait(60) == 0, vacuum.log_tail()
        # A table has one maintenance run at a time: who came second left it alone, and comes again.
        for again in (compaction, lambda stream: command(stream, "vacuum", "--full")):
            with ended(second := again(stream)):
                assert second.popen.wait(240) == 0, second.log_tail()
        producer.close()
        until(lambda: len(table.rows()) + len(deleted) >= producer.sent)
        reader.close()
        driver.popen.send_signal(signal.SIGTERM)
        assert driver.popen.wait(60) == 0, driver.log_tail()
    expected = {
        n: "seen" if n in merged else "new" for n in range(producer.sent) if n not in deleted
    }
    assert {row["id"]: row["tag"] for row in table.rows()} == expected
    assert len(table.rows()) == len(expected)
    assert reader.trouble == []
    assert reader.reads > 3
    assert not orphan.exists(), "vacuum has deleted nothing at all"
    operations = Counter(table.operations())
    assert {"VACUUM START", "VACUUM END", "DELETE", "MERGE"} <= operations.keys(), operations
    assert operations["OPTIMIZE"] >= 1, operations
    told = first.log.read_text()
    assert "failed" not in told, told
    lost = [int(n) for n in re.findall(r"(\d+) conflicts, ", told)]
    assert sum(lost) == len(conflicts(first)), told  # each with its kind
    kinds = {finding.kind.value for finding in stream.audit().findings}
    assert not kinds & {"gap", "overlap", "imbalance", "rows_differ", "data_doubled"}, kinds


def test_a_long_read_survives_vacuum(
    deploy: Deploy, s3_server: S3Server, bucket: S3Bucket | None
) -> None:
    """Fault 25: what the reader began with stays for the retention, though compacted since."""
    stream = deploy("none", s3=bucket, maintenance=SETTLED)
    table = LakeTable(stream.spec.table.path, bucket)
    for n in range(6):
        table.append([n * 2, n * 2 + 1])
    orphan = old_orphan(stream, bucket, s3_server)

    def code(*arguments: str) -> int:
        with ended(child := command(stream, *arguments)):
            return child.popen.wait(300)

    long_read = table.delta().to_pyarrow_dataset().get_fragments()
    ids = next(long_read).to_table(columns=["id"]).column("id").to_pylist()
    assert code("compact") == 0
    assert code("vacuum", "--full") == 0
    assert not orphan.exists(), "vacuum has deleted nothing at all"
    assert table.files() == 1
    for file in long_read:
        ids += file.to_table(columns=["id"]).column("id").to_pylist()
    assert sorted(ids) == list(range(12))
    assert code("vacuum", "--keep", "0h") == 2


def test_a_killed_compaction_keeps_its_commits_and_leaves_no_jvm(
    spark: SparkSession, deploy: Deploy, s3: S3Bucket
) -> None:
    """kill -9 of the driver alone, in the middle: the JVM must not go on writing by itself."""
    rules = {**SETTLED, "compaction": {**SETTLED["compaction"], "commit_bytes": 1}}
    stream = deploy("none", "id BIGINT", s3=s3, maintenance=rules)
    table = LakeTable(stream.spec.table.path, s3)
    hours = [f"{n:02}" for n in range(12)]
    for n in range(3):
        table.append([n * 100 + i for i in range(len(hours))], hour=hours)
    before = table.rows()
    doomed = compaction(stream)
    with ended(doomed):
        until(lambda: "OPTIMIZE" in table.operations())
        jvms = psutil.Process(doomed.pid).children(recursive=True)
        os.kill(doomed.pid, signal.SIGKILL)
        gone, alive = psutil.wait_procs(jvms, timeout=30)
        assert alive == []
    assert gone, "there was a JVM"
    done = table.operations().count("OPTIMIZE")
    assert 1 <= done < len(hours)
    assert table.rows() == before
    again = compaction(stream)
    with ended(again):
        assert again.popen.wait(180) == 0, again.log_tail()
    assert table.operations().count("OPTIMIZE") == len(hours)
    assert table.files() == len(hours)
    assert table.rows() == before
