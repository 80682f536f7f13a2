from __future__ import annotations

import pytest

from ingest_platform_tests.benchmarks.figures import Figures, growth, percentile
from ingest_platform_tests.benchmarks.targets import batch_clock, targets


def test_ratios_are_taken_round_by_round():
    """Both contenders of a round had the machine's same minutes; medians may be of other rounds."""
    figures = Figures()
    for a, b in ((100.0, 200.0), (50.0, 150.0), (80.0, 80.0)):
        figures.add("throughput", "a", "warm", a, "records/s")
        figures.add("throughput", "b", "warm", b, "records/s")
    figures.ratio("throughput", "b", "a", "warm")
    ratio = figures.get("throughput", "b/a", "warm")
    assert ratio is not None
    assert ratio.values == (2.0, 3.0, 1.0)
    assert ratio.median == 2.0


def test_growth_is_that_of_the_fitted_line():
    assert growth([0, 1, 2, 3], [10, 12, 14, 16]) == pytest.approx(6)
    assert growth([5, 5], [1, 9]) == 0


def test_percentile_is_one_of_the_values():
    assert percentile([4, 1, 3, 2], 95) == 4
    assert percentile([7], 50) == 7


def test_targets_are_left_out_where_nothing_was_measured():
    figures = Figures()
    figures.add("throughput", "b", "first N", 39.0, "s")
    assert [t.name for t in targets(figures, 50_000)] == []
    (target,) = targets(figures, 4_000_000)
    assert target.met
    assert target.to_json()["goal"] == 40.0


def test_near_empty_batches_are_compared_by_one_clock():
    """The driver's own clock starts later than Spark's: against (a) it would flatter (b)."""
    figures = Figures()
    figures.add("fixed", "a", "batch p50, trigger clock", 1.5, "s")
    figures.add("fixed", "b", "batch p50, own clock", 0.3, "s")
    assert batch_clock(figures, "fixed") == "checkpoint"
    figures.add("fixed", "b", "batch p50, trigger clock", 0.5, "s")
    assert batch_clock(figures, "fixed") == "trigger"
