"""Checkpoints of the table's log: written beside the batches, the more seldom the larger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingest_platform.stream.log_checkpoint import EVERY, LogCheckpointer, commits_between
from ingest_platform_tests.lake_tables import LakeTable

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("actions", "commits"), [(0, 10), (9_999, 10), (161_000, 161), (10_000_000, 250)]
)
def test_a_checkpoint_is_as_seldom_as_it_is_large(actions: int, commits: int) -> None:
    """Else the log of a table with a week's tombstones would outgrow its data."""
    assert commits_between(actions) == commits


def test_the_size_of_the_last_checkpoint_is_known(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = LakeTable(str(tmp_path / "t"))
    for n in range(EVERY + 1):
        table.append([n])
    checkpointer = LogCheckpointer(spark, table.path)
    checkpointer.committed(0)
    checkpointer.committed(EVERY)
    checkpointer.close()
    last = json.loads((tmp_path / "t" / "_delta_log" / "_last_checkpoint").read_text())
    assert last["version"] == EVERY
    assert last["size"] >= EVERY
    assert not caplog.records
