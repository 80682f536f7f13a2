"""The goals of `make bench-auto-compaction`, held against figures of two rounds."""

from __future__ import annotations

from ingest_platform_tests.benchmarks.bench_auto_compaction import PART, QUERIES, goals
from ingest_platform_tests.benchmarks.figures import Figures


def figures(slow_query: float) -> Figures:
    booked = Figures()
    for inline, asynchronous in ((200.0, 100.0), (180.0, 100.0)):
        for name in ("total", "p95", "p99"):
            booked.add(PART, "inline", name, inline, "ms")
            booked.add(PART, "async", name, asynchronous, "ms")
            booked.ratio(PART, "inline", "async", name)
        for name, value in (("quick", 10.0), ("slow", slow_query)):
            booked.add(QUERIES, "inline", name, 10.0, "ms")
            booked.add(QUERIES, "async", name, value, "ms")
            booked.ratio(QUERIES, "inline", "async", name)
    return booked


def test_ratios_are_round_by_round_and_the_slowest_query_counts() -> None:
    met = {target.name: (round(target.value, 3), target.met) for target in goals(figures(12.0))}
    assert met == {
        "total, inline / async": (1.9, True),
        "p95, inline / async": (1.9, False),
        "p99, inline / async": (1.9, False),
        "slowest query, async / inline": (1.2, False),
    }


def test_queries_that_are_no_slower_meet_their_goal() -> None:
    assert goals(figures(10.2))[-1].met


def test_without_figures_there_is_nothing_to_hold_against() -> None:
    assert goals(Figures()) == []
