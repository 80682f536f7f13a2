"""Asynchronous auto compaction in a real session: what it merges, and to whom it yields."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from ingest_platform import dml_in_flight
from ingest_platform.adapters.delta_tables import options_for
from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.maintain.auto_compaction.attempt import YieldedError
from ingest_platform.maintain.auto_compaction.fallback import FallbackPolicy
from ingest_platform.maintain.auto_compaction.markers import Marker, markers_folder, markers_uri
from ingest_platform.maintain.auto_compaction.optimize import ENABLED, YIELD_TO, SparkCompactor
from ingest_platform.maintain.auto_compaction.outcome import Outcome
from ingest_platform.maintain.auto_compaction.service import AutoCompactionService
from ingest_platform.maintain.auto_compaction.snapshot_files import SnapshotFiles
from ingest_platform.maintain.auto_compaction.stream_compaction import open_service
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MIN_FILES = "spark.databricks.delta.autoCompact.minNumFiles"


@pytest.fixture(autouse=True)
def few_files(spark: SparkSession) -> Iterator[None]:
    """Six small files make a partition due."""
    spark.conf.set(MIN_FILES, "6")
    yield
    spark.conf.unset(MIN_FILES)


class Lake:
    """One table with its state, on a local path or on S3."""

    def __init__(self, spark: SparkSession, root: str, environ: dict[str, str]) -> None:
        self.spark, self.table, self.environ = spark, f"{root}/t", environ
        self.storage = StorageEnvironment.from_env(environ)
        self.objects: ObjectStore = object_store(f"{root}/_ingest", self.storage)

    def append(self, start: int, files: int = 4, **columns: str) -> None:
        rows = self.spark.range(start, start + 40, 1, files).selectExpr(
            "id", *(f"{sql} AS {name}" for name, sql in columns.items())
        )
        rows.write.format("delta").mode("append").partitionBy(*columns).save(self.table)

    def delta(self) -> DeltaTable:
        return DeltaTable(self.table, storage_options=options_for(self.table, self.storage))

    def operations(self) -> list[str]:
        return [entry["operation"] for entry in reversed(self.delta().history())]

    def ids(self) -> list[int]:
        return sorted(self.delta().to_pyarrow_table(columns=["id"])["id"].to_pylist())

    def compactor(self) -> SparkCompactor:
        where = markers_uri(self.objects, self.table)
        return SparkCompactor(self.spark, SnapshotFiles(self.storage), lambda _: where)

    @contextmanager
    def service(self, **policy: Any) -> Iterator[AutoCompactionService]:
        made = open_service(self.spark, self.storage, self.objects, policy=FallbackPolicy(**policy))
        try:
            yield made
        finally:
            assert made.close(20)


@pytest.fixture(params=["local", "s3"])
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Lake:
    if request.param == "local":
        return Lake(spark, str(tmp_path), {})
    s3: S3Bucket = request.getfixturevalue("s3")
    return Lake(spark, f"s3a://{s3.bucket}/lake", s3.environment())


@pytest.fixture
def local_lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, str(tmp_path), {})


def in_thread(work: Callable[[], None]) -> None:
    """As a worker does it: in a thread with a JVM thread of its own."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (told to the test's thread)
            failures.append(error)

    thread = InheritableThread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


@contextmanager
def all_cores_taken(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Two tasks that hold both cores while the block runs, so that other jobs wait."""
    stop = folder / "stop"

    def hold(rows: Iterator[Any]) -> None:
        (folder / f"holds-{os.getpid()}-{id(rows)}").touch()
        while not stop.exists():
            time.sleep(0.02)

    holder = InheritableThread(
        target=lambda: spark.sparkContext.parallelize(range(2), 2).foreachPartition(hold)
    )
    holder.start()
    try:
        until(lambda: len(list(folder.glob("holds-*"))) == 2)
        yield
    finally:
        stop.touch()
        holder.join()


@contextmanager
def compaction_that_waits(lake: Lake, folder: Path) -> Iterator[AutoCompactionService]:
    """A compaction under way that gets no core while the block runs: only cancelling can end it."""
    lake.append(0)
    lake.append(40)
    with lake.service() as service, all_cores_taken(lake.spark, folder):
        service.committed(lake.table)
        # Beside the job that holds the cores.
        until(lambda: len(lake.spark.sparkContext.statusTracker().getActiveJobsIds()) > 1)
        yield service


def until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_merges_due_partitions_only_beside_the_writer(local_lake: Lake) -> None:
    """And in sessions of its own: nothing of it shows in the session that others use."""
    lake, spark = local_lake, local_lake.spark
    lake.append(0, p="IF(id < 30, 'it\\'s', 'b')")
    lake.append(40, p="'it\\'s'")
    with lake.service() as service:
        service.committed(lake.table)
        assert service.wait_until_idle(60)
        assert service.report(lake.table).completed == 1
    assert lake.operations() == ["WRITE", "WRITE", "OPTIMIZE"]
    [merged] = [h for h in lake.delta().history() if h["operation"] == "OPTIMIZE"]
    assert merged["operationParameters"]["auto"] in {True, "true"}
    adds = lake.delta().get_add_actions(flatten=True)
    assert sorted(adds.column("partition.p").to_pylist()) == ["b", "it's"]
    assert lake.ids() == list(range(80))
    assert spark.conf.get(YIELD_TO, None) is None
    assert SparkSession.active().conf.get(YIELD_TO, None) is None


@pytest.mark.parametrize("mode", ["async", "inline"])
def test_a_clustered_table_is_not_written_anew_each_time(local_lake: Lake, mode: str) -> None:
    """With its default settings Delta rewrites all of it."""
    lake, spark = local_lake, local_lake.spark
    spark.sql(f"CREATE TABLE delta.`{lake.table}` (id BIGINT, p STRING) USING delta CLUSTER BY (p)")
    hashed, large = "sha2(CAST(id AS STRING), 256)", 1_500_000

    def append(start: int, end: int, files: int) -> None:
        rows = spark.range(start, end, 1, files).selectExpr("id", f"{hashed} AS p")
        rows.write.format("delta").mode("append").save(lake.table)

    append(1000, 1000 + large, 2)
    spark.sql(f"OPTIMIZE delta.`{lake.table}`")
    spark.conf.set(ENABLED, str(mode == "inline").lower())
    try:
        for start in (0, 40, 80):
            append(start, start + 40, 8)
            if mode == "async":
                in_thread(lambda: lake.compactor().run(lake.table, [{}], "g"))
    finally:
        spark.conf.unset(ENABLED)
    merged = [h for h in lake.delta().history() if h["operation"] == "OPTIMIZE"]
    sizes = [json.loads(h["operationMetrics"]["numRemovedBytes"]) for h in reversed(merged)]
    assert len(sizes) >= 3
    assert max(sizes[1:]) < 100_000 < sizes[0], sizes
    assert lake.ids() == [*range(120), *range(1000, 1000 + large)]


def test_commit_is_turned_back_while_dml_is_in_flight(lake: Lake) -> None:
    """The last look is the LogStore's own; a person's OPTIMIZE is let through all the same."""
    lake.append(0)
    lake.append(40)
    compactor = lake.compactor()
    due = compactor.look(lake.table)
    assert due == [{}]
    with dml_in_flight(lake.table, environ=lake.environ):
        with pytest.raises(YieldedError) as turned_back:
            in_thread(lambda: compactor.run(lake.table, due, "g"))
        assert turned_back.value.outcome is Outcome.BEFORE_COMMIT
        assert lake.operations() == ["WRITE", "WRITE"]
        lake.append(80, files=2)
        lake.spark.sql(f"OPTIMIZE delta.`{lake.table}`")
    assert lake.operations() == ["WRITE", "WRITE", "WRITE", "OPTIMIZE"]
    lake.append(120, files=6)
    in_thread(lambda: compactor.run(lake.table, due, "h"))
    assert lake.operations()[-1] == "OPTIMIZE"
    assert lake.ids() == list(range(160))


def test_dml_of_this_process_cancels_the_jobs(local_lake: Lake, tmp_path: Path) -> None:
    lake = local_lake
    with compaction_that_waits(lake, tmp_path) as service:
        with dml_in_flight(lake.table):
            assert service.report(lake.table).running == 0
        report = service.report(lake.table)
    assert report.yielded["mid_flight"] == 1
    assert (report.mode, report.fallbacks, report.errors) == ("inline", 1, 0)
    assert lake.operations() == ["WRITE", "WRITE"]


def test_dml_of_another_driver_cancels_the_jobs(local_lake: Lake, tmp_path: Path) -> None:
    """It is seen by its marker alone."""
    lake = local_lake
    with compaction_that_waits(lake, tmp_path) as service:
        key = f"{markers_folder(lake.table)}/other.json"
        lake.objects.put(key, Marker("other:1").to_json().encode())
        assert service.wait_until_idle(30)
        assert service.report(lake.table).yielded["mid_flight"] == 1


@contextmanager
def overtaken(lake: Lake, folder: Path) -> Iterator[AutoCompactionService]:
    """A compaction that has read its files, and commits when the block has ended."""
    lake.append(0)
    lake.append(40)
    with lake.service() as service:
        with all_cores_taken(lake.spark, folder):
            service.committed(lake.table)
            until(lambda: len(lake.spark.sparkContext.statusTracker().getActiveJobsIds()) > 1)
            yield service
        assert service.wait_until_idle(60)


def test_another_optimize_that_is_faster_is_no_trouble(local_lake: Lake, tmp_path: Path) -> None:
    """Such as the schedule's own: the files are merged, so nobody has to fall back to inline."""
    with overtaken(local_lake, tmp_path) as service:
        local_lake.delta().optimize.compact()
    report = service.report(local_lake.table)
    assert (report.completed, report.idle, report.errors) == (0, 1, 0), report
    assert sum(report.yielded.values()) == report.fallbacks == 0
    assert local_lake.operations() == ["WRITE", "WRITE", "OPTIMIZE"]


def test_dml_that_nobody_announced_is_a_conflict(local_lake: Lake, tmp_path: Path) -> None:
    with overtaken(local_lake, tmp_path) as service:
        local_lake.delta().delete("id < 8")
    report = service.report(local_lake.table)
    assert (report.completed, report.errors, report.fallbacks) == (0, 0, 1), report
    assert report.yielded["conflict"] == 1
    assert local_lake.operations() == ["WRITE", "WRITE", "DELETE"]


def test_shutdown_is_bounded_while_a_compaction_hangs(local_lake: Lake, tmp_path: Path) -> None:
    """A driver has 30 s to obey SIGTERM, and the batch needs most of them."""
    lake = local_lake
    with compaction_that_waits(lake, tmp_path) as service:
        started = time.monotonic()
        assert service.close(4.0)
        assert time.monotonic() - started < 6.0
        assert service.report(lake.table).cut_off == 1
    assert lake.operations() == ["WRITE", "WRITE"]


def test_same_rows_as_a_serial_run(lake: Lake) -> None:
    """Appends, announced DELETEs and compaction at once: nothing lost, nothing twice.

    The DELETEs have a partition of their own, so that they meet the compaction, not the appends.
    """
    lake.append(0, files=8, p="'old'")
    deleted: list[int] = []

    def delete() -> None:
        for n in range(2):
            with dml_in_flight(lake.table, environ=lake.environ):
                lake.spark.sql(f"DELETE FROM delta.`{lake.table}` WHERE p = 'old' AND id = {n * 7}")
            deleted.append(n * 7)

    with lake.service(heal_after=0.5, heal_cap=0.5) as service:
        deleter = InheritableThread(target=delete)
        deleter.start()
        for n in range(1, 5):
            lake.append(40 * n, p="'new'")
            service.committed(lake.table)
        deleter.join()
        until(lambda: service.mode(lake.table) == "async")
        service.committed(lake.table)
        assert service.wait_until_idle(60)
        report = service.report(lake.table)
    assert deleted == [0, 7]
    assert lake.ids() == [n for n in range(200) if n not in deleted]
    assert report.errors == 0
    assert "OPTIMIZE" in lake.operations()


def test_stream_compacts_asynchronously_and_says_so(
    spark: SparkSession,
    kafka: KafkaServer,
    topic: Callable[..., str],
    deploy: Callable[..., DeployedStream],
) -> None:
    """Through the driver: the ledgers still prove every offset, and the status tells the counts."""
    name = topic(1)
    table = {"auto_compaction": "async", "target_writers": 1}
    source = {"topic": name, "max_offsets_per_trigger": 2}
    stream = deploy(name, "id BIGINT", table=table, source=source)
    places = produce(kafka.bootstrap_servers, name, as_records([b'{"id":1}'] * 24))
    begun: list[str] = []

    def reached(phase: str) -> None:
        begun.append(phase)
        if begun.count("plan") == 12:  # the last batch: by its end the driver takes no more time
            until(lambda: any(h["operation"] == "OPTIMIZE" for h in stream.delta().history()))

    stream.drain(spark, reached)

    stream.assert_holds(places)
    status = stream.status()
    assert status is not None
    assert status.auto_compaction is not None
    report = status.auto_compaction
    assert report.completed >= 1
    assert report.submitted + report.coalesced == 12
    assert (report.errors, sum(report.yielded.values())) == (0, 0)
    assert json.loads(status.to_json())["auto_compaction"]["completed"] == report.completed


def test_stream_compacts_inline(
    spark: SparkSession,
    kafka: KafkaServer,
    topic: Callable[..., str],
    deploy: Callable[..., DeployedStream],
) -> None:
    """Delta's own hook runs in the batch's commit although the driver writes by its own means."""
    name = topic(1)
    table = {"auto_compaction": "inline", "target_writers": 1}
    source = {"topic": name, "max_offsets_per_trigger": 2}
    stream = deploy(name, "id BIGINT", table=table, source=source)
    places = produce(kafka.bootstrap_servers, name, as_records([b'{"id":1}'] * 16))
    stream.drain(spark)

    stream.assert_holds(places)
    operations = [entry["operation"] for entry in stream.delta().history()]
    assert operations.count("OPTIMIZE") == 1
    assert spark.conf.get(ENABLED, None) is None
