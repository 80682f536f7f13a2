"""The simulated life of a table: what the docs say about write amplification rests on it."""

from __future__ import annotations

import pytest

from ingest_platform.spec import CompactionSpec
from ingest_platform_tests.benchmarks.table_life import Load, live


@pytest.mark.parametrize("partitioning", ["hours", "days", "none"])
def test_files_stay_bounded_and_bytes_are_rewritten_twice_at_most(partitioning):
    """In a day 46,000 files come in; what is left must follow the bytes, not the batches."""
    life = live(Load(partitioning), CompactionSpec(), hours=24)
    assert life.amplification < 2
    assert max(life.files) < 600
    assert life.files[-1] < 250
    assert life.looks == 96


def test_without_small_files_nothing_is_rewritten():
    rare = Load("hours", trigger_seconds=3600, late=0.0, writers=1)
    life = live(rare, CompactionSpec(), hours=24)
    assert (life.runs, life.rewritten) == (0, 0)
