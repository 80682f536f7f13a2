"""Compaction with Spark: fewer files, the same rows, and nobody else is disturbed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tenacity import wait_none

from ingest_platform.adapters.data_files import live_files
from ingest_platform.adapters.objects import object_store
from ingest_platform.drivers.compact_table import compact_table
from ingest_platform.drivers.vacuum_table import VacuumOptions, vacuum_table
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import LogDamagedError
from ingest_platform.maintain.auto_compaction.markers import YIELD_TO, Marker, markers_folder
from ingest_platform.maintain.compaction.announced_dml import AnnouncedDml
from ingest_platform.maintain.compaction.plan import plan_compaction
from ingest_platform.maintain.compaction.run import Compactor
from ingest_platform.stream.transaction import Transaction
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.fault_proxy import FaultProxy
from ingest_platform_tests.lake_tables import LakeTable, table_spec
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

# Each is a partition value that some escaping could get wrong.
HOSTILE = ["plain", "it's", "a b", "50%", "x=y/z", "ü", "back\\slash", None]


def no_session() -> SparkSession:
    raise AssertionError("Spark was asked for although there is nothing to do")


def compact(spark: SparkSession, table: LakeTable, **compaction: Any):
    spec = table_spec(table.path, compaction=compaction)
    return compact_table(spec, table.storage, lambda: spark, datetime.now(UTC), dry_run=False)


@pytest.mark.parametrize("where", ["local", "s3"])
def test_small_files_are_packed_and_every_row_stays(
    spark: SparkSession, s3: S3Bucket, tmp_path: Path, where: str
) -> None:
    """With partition values of all kinds, since a partition that is not matched never shrinks."""
    path = f"s3a://{s3.bucket}/lake/t" if where == "s3" else str(tmp_path / "t")
    table = LakeTable(path, s3 if where == "s3" else None)
    for n in range(3):
        ids = range(n * 100, n * 100 + len(HOSTILE))
        table.append(ids, country=HOSTILE)
    before, version = table.rows(), table.delta().version()
    spec = table_spec(path)
    dry = compact_table(spec, table.storage, no_session, datetime.now(UTC), dry_run=True)
    assert dry.numbers["partitions_planned"] == len(HOSTILE)
    assert table.delta().version() == version

    report = compact(spark, table)
    assert report.numbers["files_removed"] == 3 * len(HOSTILE), report
    assert report.numbers["files_added"] == len(HOSTILE) == table.files()
    assert report.numbers["partitions_compacted"] == len(HOSTILE)
    assert table.rows() == before
    assert table.operations()[-1] == "OPTIMIZE"

    again = compact_table(spec, table.storage, no_session, datetime.now(UTC), dry_run=False)
    assert again.done == "nothing to compact"


@pytest.mark.parametrize("settle", ["0s", "1h"])
def test_a_clustered_table_is_not_written_anew_each_time(
    spark: SparkSession, tmp_path: Path, settle: str
) -> None:
    """Delta would: a cube of less than 100 GB is never done for it."""
    path = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, page STRING) USING delta CLUSTER BY (page)")
    table = LakeTable(path)

    def add(start: int, count: int) -> None:
        rows = spark.range(start, start + count)
        rows.selectExpr("id", "sha2(cast(id AS STRING), 256) AS page").coalesce(1).write.format(
            "delta"
        ).mode("append").save(path)

    rules = {
        "target_file_size": "1000000B",
        "commit_bytes": "2000000B",
        "settle": settle,
        "hot_files": 4,
    }
    for large in range(2):
        add(large * 20_000, 20_000)
    for fresh in range(3):
        for n in range(4):
            add(40_000 + fresh * 40 + n * 10, 10)
        report = compact(spark, table, **rules)
        assert report.numbers["files_removed"] >= 4, report
    assert report.numbers["bytes_rewritten"] < 100_000 < report.numbers["bytes_after"]
    spec = table_spec(path, compaction=rules)
    again = compact_table(spec, table.storage, no_session, datetime.now(UTC), dry_run=False)
    assert again.done == "nothing to compact"
    assert [row["id"] for row in table.rows()] == list(range(40_120))
    [clustered] = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("clusteringColumns").first()
    assert clustered == ["page"]


def test_a_kill_keeps_the_finished_batches(spark: SparkSession, tmp_path: Path) -> None:
    """A run of an hour must not be lost for its last minute."""
    table = LakeTable(str(tmp_path / "t"))
    for n in range(3):
        table.append([n * 10, n * 10 + 1], hour=["11", "12"])
    before = table.rows()
    spec = table_spec(table.path, compaction={"commit_bytes": 1})
    found = live_files(table.path, table.storage)
    assert found
    rules = spec.maintenance.compaction
    plan = plan_compaction(found.files, rules, datetime.now(UTC))
    assert len(plan.batches) == 2

    def killed(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Compactor(spark, table.path, found.partition_types, rules).run(plan, killed)
    assert table.operations().count("OPTIMIZE") == 1
    report = compact(spark, table, commit_bytes=1)
    assert report.numbers["partitions_compacted"] == 1
    assert table.rows() == before
    assert spark.conf.get("spark.databricks.delta.optimize.batchSize", None) is None


def test_an_unpartitioned_table_is_compacted_within_the_budget_of_each_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = LakeTable(str(tmp_path / "t"))
    for n in range(12):
        table.append(range(n * 100, n * 100 + 1 + 8 * n))
    before, size = table.rows(), sum(f.bytes for f in live_files(table.path, table.storage).files)
    first = compact(spark, table, max_bytes=size // 2)
    assert 0 < first.numbers["bytes_rewritten"] <= size // 2
    compact(spark, table)
    assert table.files() == 1
    assert table.rows() == before


def test_a_delete_that_comes_first_makes_compaction_try_again(
    spark: SparkSession, s3: S3Bucket
) -> None:
    """The conflict for certain: the commit is held back while another engine rewrites a file."""
    table = LakeTable(f"s3a://{s3.bucket}/lake/t", s3)
    for n in range(4):
        table.append([n, n + 10])
    spec = table_spec(table.path)
    with FaultProxy(s3.endpoint) as proxy:
        hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
        hadoop.set(f"fs.s3a.bucket.{s3.bucket}.endpoint", proxy.endpoint)
        found = live_files(table.path, table.storage)
        assert found
        rules = spec.maintenance.compaction
        plan = plan_compaction(found.files, rules, datetime.now(UTC))
        commit = proxy.stall(method="PUT", path=r"/_delta_log/\d{20}\.json$", times=1)
        compactor = Compactor(spark, table.path, found.partition_types, rules, wait=wait_none())

        def meanwhile() -> None:
            assert commit.wait_for_hits(1, deadline=60)
            table.delta().delete("id = 12")
            commit.release()

        from threading import Thread

        other = Thread(target=meanwhile)
        other.start()
        [result] = compactor.run(plan, lambda _: None)
        other.join()
    assert result.conflicts == 1
    assert result.yielded is None
    assert [row["id"] for row in table.rows()] == [0, 1, 2, 3, 10, 11, 13]
    assert table.files() == 1


@pytest.mark.parametrize("where", ["local", "s3"])
def test_dml_announced_before_the_commit_goes_first(
    spark: SparkSession, s3: S3Bucket, tmp_path: Path, where: str
) -> None:
    """A MERGE of ten minutes must not fail because compaction was a second faster."""
    root = f"s3a://{s3.bucket}/lake" if where == "s3" else str(tmp_path)
    table = LakeTable(f"{root}/t", s3 if where == "s3" else None)
    for n in range(4):
        table.append([n])
    state = object_store(f"{root}/_ingest", table.storage)
    waits = []

    class Late(AnnouncedDml):
        """The DML begins when the batch has found that there is none, and ends after its defeat."""

        def wait(self) -> None:
            marker = f"{markers_folder(table.path)}/merge.json"
            state.delete(marker)
            super().wait()
            if not waits:
                state.put(marker, Marker("other:1").to_json().encode())
            waits.append(table.operations().count("OPTIMIZE"))

    found = live_files(table.path, table.storage)
    assert found
    rules = table_spec(table.path).maintenance.compaction
    plan = plan_compaction(found.files, rules, datetime.now(UTC))
    compactor = Compactor(
        spark, table.path, found.partition_types, rules, Late(state, table.path), wait_none()
    )
    [result] = compactor.run(plan, lambda _: None)
    assert (result.conflicts, result.yielded, result.files_removed) == (1, None, 4)
    assert waits == [0, 0]
    assert table.operations().count("OPTIMIZE") == 1
    assert [row["id"] for row in table.rows()] == [0, 1, 2, 3]
    assert spark.conf.get(YIELD_TO, None) is None


def test_settled_partitions_are_clustered(spark: SparkSession, tmp_path: Path) -> None:
    """With `z_order`, a query on the clustered column can leave files out."""
    table = LakeTable(str(tmp_path / "t"))
    for n in range(4):
        table.append(range(n, 4000, 4), user=["u"] * 1000)
    before = table.rows()
    report = compact(spark, table, z_order=["id"], target_file_size=20_000)
    assert report.numbers["files_removed"] == 4, report
    optimize = table.history()[-1]
    assert "id" in optimize["operationParameters"]["zOrderBy"]
    assert table.rows() == before


@pytest.mark.parametrize("where", ["local", "s3"])
def test_nobody_maintains_a_table_whose_log_has_a_hole(
    s3: S3Bucket, tmp_path: Path, where: str
) -> None:
    """Fault 24: what the missing entry removed would come back, or be deleted for good."""
    root = f"s3a://{s3.bucket}/lake" if where == "s3" else str(tmp_path)
    table = LakeTable(f"{root}/t", s3 if where == "s3" else None)
    for n in range(3):
        table.append([n])
    object_store(root, table.storage).delete(f"t/_delta_log/{1:020}.json")
    spec, now = table_spec(table.path), datetime.now(UTC)
    with pytest.raises(LogDamagedError, match="hole"):
        compact_table(spec, table.storage, no_session, now, dry_run=False)
    with pytest.raises(LogDamagedError, match="hole"):
        vacuum_table(spec, table.storage, no_session, now, VacuumOptions(full=True))


def test_the_stream_goes_on_after_any_other_writer(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, s3: S3Bucket
) -> None:
    """The driver asks a version checksum for its last batch, and others write those too, or none.

    A wrong answer would double a batch, or leave one out.
    """
    name = topic(1)
    stream = deploy(name, s3=s3)
    path = stream.spec.table.path
    others = LakeTable(path, s3)
    places = []

    def one_more_batch() -> None:
        places.extend(
            produce(kafka.bootstrap_servers, name, as_records([b'{"id":%d}' % len(places)]))
        )
        stream.drain(spark)

    def last_batch() -> tuple[int, int]:
        session = stream.ledgers()[-1].session
        return Transaction(spark, path).last_batch(session), stream.ledgers()[-1].batch

    for other in (
        lambda: spark.sql(f"OPTIMIZE delta.`{path}`"),
        lambda: spark.sql(f"VACUUM delta.`{path}`"),
        lambda: spark.sql(
            f"MERGE INTO delta.`{path}` t USING (SELECT CAST(0 AS BIGINT) AS id) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET t.id = s.id"
        ),
        lambda: others.delta().optimize.compact(),  # noqa: PLW0108  (opened when it is called)
    ):
        one_more_batch()
        one_more_batch()
        other()
        found, expected = last_batch()
        assert found == expected, others.operations()
    one_more_batch()
    stream.assert_holds(places)


@pytest.mark.parametrize("where", ["local", "s3"])
def test_batches_after_a_compaction_do_not_replay_the_log(
    spark: SparkSession, s3: S3Bucket, tmp_path: Path, where: str
) -> None:
    """Delta would do so with a Spark job, which takes the longer the longer the log is."""
    path = f"s3a://{s3.bucket}/lake/t" if where == "s3" else str(tmp_path / "t")
    table = LakeTable(path, s3 if where == "s3" else None)
    rows = spark.range(4).repartition(2)
    spark.range(0, 60, numPartitions=60).write.format("delta").save(path)
    batches = itertools.count()

    def begun() -> tuple[Transaction, int]:
        batch, txn = next(batches), Transaction(spark, path)
        txn.last_batch("stream")
        txn.write(rows)
        return txn, batch

    def jobs_of_commit(txn: Transaction, batch: int) -> int:
        group = f"commit-{batch}"
        spark.sparkContext.setJobGroup(group, "commit of a batch")
        try:
            txn.commit("stream", batch, "{}")
        finally:
            spark.sparkContext._jsc.clearJobGroup()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    assert [jobs_of_commit(*begun()) for _ in range(2)] == [0, 0]
    overtaken = begun()
    report = compact(spark, table)
    assert report.numbers["files_removed"] == 64, report
    assert jobs_of_commit(*overtaken) == 0
    assert [jobs_of_commit(*begun()) for _ in range(2)] == [0, 0]
    assert table.operations()[-4:-2] == ["OPTIMIZE", "STREAMING UPDATE"]
