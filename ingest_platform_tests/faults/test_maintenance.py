"""Compaction and vacuum beside everyone else on one table, with real drivers."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.embedded.process import ChildProcess, spawn
from ingest_platform.maintain.compaction.conflicts import conflict_of
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.lake_tables import LakeTable
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long, pytest.mark.timeout(590)]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

DRIVER = "ingest_platform.drivers.maintenance"
ROUNDS = 10  # of a user's DELETE and MERGE
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
        while not self._done.is_set():
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
        while not self._done.wait(0.5):
            ids = range(self.sent, self.sent + 20)
            values = [json.dumps({"id": n, "tag": "new"}).encode() for n in ids]
            produce(self._servers, self._topic, as_records(values, partitions=2))
            self.sent += len(values)

    def close(self) -> None:
        self._done.set()
        self.join(60)


class User:
    """Someone's own statements on the table; those that lose to another writer are repeated."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self._path = spark, path
        self.lost: list[str] = []

    def run(self, statement: str) -> None:
        for _ in range(20):
            try:
                self._spark.sql(statement.format(table=f"delta.`{self._path}`"))
            except Exception as error:
                kind = conflict_of(error)
                if kind is None:
                    raise
                self.lost.append(kind)
            else:
                return
        raise AssertionError(f"{statement} lost 20 times: {Counter(self.lost)}")


def test_stream_compaction_vacuum_user_and_reader_at_once(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, s3: S3Bucket
) -> None:
    """Rows are those of a serial run (fault 26): each loser repeated its work or yielded."""
    name = topic(2)
    stream = deploy(name, "id BIGINT, tag STRING", s3=s3, trigger="1s", maintenance=SETTLED)
    table = LakeTable(stream.spec.table.path, s3)
    producer, reader = Producer(kafka.bootstrap_servers, name), Reader(table)
    user, deleted, merged = User(spark, table.path), set[int](), set[int]()
    driver = stream.start()
    environ = dict(stream.environ)
    logs = stream.file.parent
    with ended(driver):
        producer.start()
        until(lambda: bool((found := stream.status()) and found.last_batch))
        until(lambda: len(table.rows()) > 100)
        reader.start()
        vacuum = process(
            environ,
            logs / "vacuum.log",
            "ingest_platform.cli",
            "vacuum",
            str(stream.file),
            "--full",
            "--json",
        )
        first = compaction(stream)
        with ended(vacuum, first):
            for _ in range(ROUNDS):
                held = [row["id"] for row in table.rows()]
                victim, target = held[len(held) // 3], held[-20]
                user.run(f"DELETE FROM {{table}} WHERE id = {victim}")
                deleted.add(victim)
                user.run(
                    f"MERGE INTO {{table}} t USING (SELECT CAST({target} AS BIGINT) AS id) s "
                    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.tag = 'seen'"
                )
                merged.add(target)
            # It may have lost each time; now the user is done, and only the stream goes on.
            assert first.popen.wait(240) == 0, first.log_tail()
            assert vacuum.popen.wait(60) == 0, vacuum.log_tail()
            second = compaction(stream)
            with ended(second):
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
    operations = Counter(table.operations())
    assert operations["OPTIMIZE"] >= 1, operations
    kinds = {finding.kind.value for finding in stream.audit().findings}
    assert not kinds & {"gap", "overlap", "imbalance", "rows_differ", "data_doubled"}, kinds


def test_a_long_read_survives_vacuum(tmp_path: Path) -> None:
    """Fault 25: what the reader began with stays for the retention, though compacted since."""
    folder = tmp_path / "defs" / "clicks"
    folder.mkdir(parents=True)
    document = {
        "type": "ingest_platform.KafkaDeltaTable",
        "attributes": {
            "name": "clicks",
            "source": {"topic": "t"},
            "decode": {"schema": "id BIGINT"},
            "table": {"path": str(tmp_path / "lake" / "clicks")},
            "maintenance": SETTLED,
        },
    }
    (folder / "defs.yaml").write_text(yaml.safe_dump(document))
    environ = {**os.environ, "INGEST_LOG_DIR": str(tmp_path / "logs")}
    table = LakeTable(document["attributes"]["table"]["path"])
    for n in range(6):
        table.append([n * 2, n * 2 + 1])
    orphan = Path(table.path) / "part-of-a-killed-writer.parquet"
    orphan.write_bytes(b"x")
    week_ago = time.time() - 8 * 86_400
    os.utime(orphan, times=(week_ago, week_ago))

    def command(*arguments: str) -> int:
        child = process(environ, tmp_path / "cli.log", "ingest_platform.cli", *arguments)
        with ended(child):
            code = child.popen.wait(300)
        assert code in {0, 2}, child.log_tail()
        return code

    long_read = iter(table.delta().file_uris())
    ids = pq.read_table(next(long_read)).column("id").to_pylist()
    assert command("compact", "--json", str(folder / "defs.yaml")) == 0
    assert command("vacuum", "--json", "--full", str(folder / "defs.yaml")) == 0
    assert not orphan.exists(), "vacuum has deleted nothing at all"
    assert table.files() == 1
    for uri in long_read:
        ids += pq.read_table(uri).column("id").to_pylist()
    assert sorted(ids) == list(range(12))
    unsafe = ("vacuum", "--keep", "0h", str(folder / "defs.yaml"))
    assert command(*unsafe) == 2


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
