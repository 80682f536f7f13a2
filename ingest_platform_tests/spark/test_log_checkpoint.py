"""Checkpoints of the table's log: written beside the batches, the more seldom the larger."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ingest_platform.adapters.data_files import live_files
from ingest_platform.spark.log_checkpoint import (
    EVERY,
    SELDOMEST,
    write_checkpoint,
    write_due_checkpoint,
)
from ingest_platform.stream.log_checkpointer import SOONEST_SECONDS, LogCheckpointer, is_due
from ingest_platform_tests.lake_tables import LakeTable

pytestmark = pytest.mark.slow


def quickly() -> Callable[[], float]:
    """A clock whose every look is late enough."""
    return partial(next, itertools.count(step=SOONEST_SECONDS))


def committed(spark: SparkSession, path: str, *versions: int, helped: bool = False) -> None:
    """A stream's driver commits these, and ends."""
    checkpointer = LogCheckpointer(spark, path, helped=helped, clock=quickly())
    for version in versions:
        checkpointer.committed(version)
        assert checkpointer.settled(60)
    checkpointer.close()


def last_checkpoint(path: str) -> dict[str, int]:
    """`_last_checkpoint` as a reader finds it; empty if there is none."""
    file = Path(path) / "_delta_log" / "_last_checkpoint"
    return json.loads(file.read_text()) if file.exists() else {}


@pytest.mark.parametrize(
    ("actions", "commits"), [(0, 10), (9_999, 10), (161_000, 161), (10_000_000, 250)]
)
def test_a_checkpoint_is_as_seldom_as_it_is_large(actions: int, commits: int) -> None:
    """Else the log of a table with a week's tombstones would outgrow its data."""
    assert is_due(commits, SOONEST_SECONDS, actions, helped=False)
    assert not is_due(commits - 1, SOONEST_SECONDS, actions, helped=False)


@pytest.mark.parametrize("helped", [False, True])
def test_quick_batches_meet_one_seldom(helped: bool) -> None:
    """But a reader never has to replay more than so many commits."""
    assert not is_due(SELDOMEST - 1, SOONEST_SECONDS - 1, 0, helped=helped)
    assert is_due(SELDOMEST, 0.0, 0, helped=helped)


def test_a_stream_leaves_checkpoints_to_compaction_as_long_as_it_may() -> None:
    assert not is_due(SELDOMEST - 1, 10 * SOONEST_SECONDS, 0, helped=True)


def test_the_size_of_the_last_checkpoint_is_known(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = LakeTable(str(tmp_path / "t"))
    for n in range(EVERY + 1):
        table.append([n])
    committed(spark, table.path, 0, EVERY)
    assert last_checkpoint(table.path)["version"] == EVERY
    assert last_checkpoint(table.path)["size"] >= EVERY
    assert not caplog.records


def test_a_driver_begins_with_what_it_finds(spark: SparkSession, tmp_path: Path) -> None:
    """Drivers that live for a few commits each would never write one otherwise."""
    table = LakeTable(str(tmp_path / "t"))
    for n in range(3):
        table.append([n])
    committed(spark, table.path, SELDOMEST - 1, helped=True)
    assert not last_checkpoint(table.path)
    committed(spark, table.path, SELDOMEST, helped=True)
    assert last_checkpoint(table.path)["version"] == 2


def test_a_stream_takes_over_what_another_writer_did(spark: SparkSession, tmp_path: Path) -> None:
    table = LakeTable(str(tmp_path / "t"))
    for n in range(EVERY):
        table.append([n])
    checkpointer = LogCheckpointer(spark, table.path, helped=False, clock=quickly())
    checkpointer.committed(0)
    assert checkpointer.settled(60)
    write_checkpoint(spark, table.path)
    written = last_checkpoint(table.path)["version"]
    assert written == EVERY - 1
    table.append([EVERY])
    checkpointer.committed(EVERY)
    checkpointer.close()
    assert last_checkpoint(table.path)["version"] == written


def test_a_run_that_has_the_log_at_hand_writes_what_is_due(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = LakeTable(str(tmp_path / "t"))
    for n in range(EVERY):
        table.append([n])
    assert not write_due_checkpoint(spark, table.path)
    assert not last_checkpoint(table.path)
    table.append([EVERY])
    spark.read.format("delta").load(table.path).count()  # as a run of compaction, it has read it
    assert write_due_checkpoint(spark, table.path)
    assert last_checkpoint(table.path)["version"] == EVERY
    assert not write_due_checkpoint(spark, table.path)


def test_a_checkpoint_that_fails_harms_nobody(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = LakeTable(str(tmp_path / "t"))
    for n in range(EVERY + 1):
        table.append([n])
    (tmp_path / "t" / "_delta_log" / f"{EVERY // 2:020}.json").unlink()
    assert not write_due_checkpoint(spark, table.path)
    committed(spark, table.path, 0, EVERY)
    assert [r.message for r in caplog.records] == ["the log's checkpoint could not be written"] * 3


def test_v2_checkpoints_where_the_table_asks_for_them(spark: SparkSession, tmp_path: Path) -> None:
    """And delta-rs, which plans and audits, reads the log from one."""
    path = str(tmp_path / "t")
    for n in range(3):
        rows = spark.range(n, n + 1, numPartitions=1).write.format("delta").mode("append")
        rows.option("delta.checkpointPolicy", "v2").save(path)
    committed(spark, path, 0, EVERY)
    names = [file.name for file in (tmp_path / "t" / "_delta_log").iterdir()]
    uuid = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    assert [n for n in names if re.fullmatch(rf"{2:020}\.checkpoint\.{uuid}\.(json|parquet)", n)]
    for version in range(2):  # the checkpoint alone tells what these held
        (tmp_path / "t" / "_delta_log" / f"{version:020}.json").unlink()
    found = live_files(path, LakeTable(path).storage)
    assert found is not None
    assert len(found.files) == 3
    uris = LakeTable(path).delta().file_uris()
    assert sorted(pq.read_table(uri).column("id")[0].as_py() for uri in uris) == [0, 1, 2]
