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
from ingest_platform.stream.log_checkpoint import (
    EVERY,
    SELDOMEST,
    SOONEST_SECONDS,
    LogCheckpointer,
    is_due,
)
from ingest_platform_tests.lake_tables import LakeTable

pytestmark = pytest.mark.slow


def quickly() -> Callable[[], float]:
    """A clock whose every look is late enough."""
    return partial(next, itertools.count(step=SOONEST_SECONDS))


@pytest.mark.parametrize(
    ("actions", "commits"), [(0, 10), (9_999, 10), (161_000, 161), (10_000_000, 250)]
)
def test_a_checkpoint_is_as_seldom_as_it_is_large(actions: int, commits: int) -> None:
    """Else the log of a table with a week's tombstones would outgrow its data."""
    assert is_due(commits, SOONEST_SECONDS, actions)
    assert not is_due(commits - 1, SOONEST_SECONDS, actions)


def test_quick_batches_meet_one_seldom() -> None:
    """But a reader never has to replay more than so many commits."""
    assert not is_due(SELDOMEST - 1, SOONEST_SECONDS - 1, 0)
    assert is_due(SELDOMEST, 0.0, 0)


def test_the_size_of_the_last_checkpoint_is_known(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = LakeTable(str(tmp_path / "t"))
    for n in range(EVERY + 1):
        table.append([n])
    checkpointer = LogCheckpointer(spark, table.path, quickly())
    checkpointer.committed(0)
    checkpointer.committed(EVERY)
    checkpointer.close()
    last = json.loads((tmp_path / "t" / "_delta_log" / "_last_checkpoint").read_text())
    assert last["version"] == EVERY
    assert last["size"] >= EVERY
    assert not caplog.records


def test_v2_checkpoints_where_the_table_asks_for_them(spark: SparkSession, tmp_path: Path) -> None:
    """And delta-rs, which plans and audits, reads the log from one."""
    path = str(tmp_path / "t")
    for n in range(3):
        rows = spark.range(n, n + 1, numPartitions=1).write.format("delta").mode("append")
        rows.option("delta.checkpointPolicy", "v2").save(path)
    checkpointer = LogCheckpointer(spark, path, quickly())
    checkpointer.committed(0)
    checkpointer.committed(EVERY)
    checkpointer.close()
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
