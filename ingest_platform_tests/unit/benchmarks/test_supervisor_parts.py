"""The supervisor's benchmark measures what it says: small runs of its parts."""

from __future__ import annotations

import pytest

from ingest_platform_tests.benchmarks import supervisor_parts as parts
from ingest_platform_tests.benchmarks.bench_supervisor import goals
from ingest_platform_tests.benchmarks.figures import Figures
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.dagster_home import make_instance

pytestmark = [pytest.mark.slow, QUIET]


def test_ticks_report_and_a_day_is_counted(tmp_path):
    """Ticks that report nothing, for a flaw in the set-up, would be fast and say nothing."""
    figures = Figures()
    with make_instance(tmp_path / "dagster") as instance:
        made = parts.one_table(figures, tmp_path, instance, commits=20, ticks=9)
        assert len(made["milliseconds"]) == 8
        day = parts.events_of_a_day(figures, tmp_path, instance, every=600)
    assert day["AssetMaterialization"] > 30
    assert day["AssetCheckEvaluation"] > 10
    assert {goal.name for goal in goals(figures)} == {
        "tick, p95 after the first",
        "tick, max after the first",
        "events of a table and day",
    }


def test_replay_is_the_same_each_time():
    one, two = (parts.replay(Figures(), days=1, seed=3) for _ in range(2))
    assert one == two
    assert one["generations"] > 3
    assert {"Start", "Wait"} <= set(one["decisions"])
