"""The goals for ingest, held against the figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from ingest_platform_tests.benchmarks import throughput
from ingest_platform_tests.benchmarks.batches import Clock
from ingest_platform_tests.benchmarks.figures import Figures

FIXED: Final = "fixed"
STEADY: Final = "steady"

_ROWS_OF_THE_GOAL: Final = 4_000_000


@dataclass(frozen=True)
class Target:
    """One goal and the median that was measured for it."""

    name: str
    value: float
    goal: float
    bound: Literal["at least", "at most"]
    unit: str

    @property
    def met(self) -> bool:
        """Whether the median reaches the goal."""
        return self.value >= self.goal if self.bound == "at least" else self.value <= self.goal

    def to_json(self) -> dict[str, Any]:
        """As it stands in the results' file."""
        return {
            "name": self.name,
            "value": float(f"{self.value:.6g}"),
            "goal": self.goal,
            "met": self.met,
            "bound": self.bound,
            "unit": self.unit,
        }


@dataclass(frozen=True)
class _Goal:
    name: str
    figure: tuple[str, str, str]  # part, contender, name
    bound: Literal["at least", "at most"]
    goal: float


def targets(figures: Figures, first: int) -> list[Target]:
    """Those goals for which there are figures.

    Args:
        figures: Of all parts that were run.
        first: N of the throughput part; the goal on the first N is for four million.
    """
    found = ((goal, figures.get(*goal.figure)) for goal in _goals(figures, first))
    return [
        Target(goal.name, figure.median, goal.goal, goal.bound, figure.unit)
        for goal, figure in found
        if figure is not None
    ]


def batch_clock(figures: Figures, part: str) -> Clock:
    """The clock by which (a) and (b) can be compared: Spark's own if the driver reports it."""
    reported = figures.get(part, "b", "batch p50, trigger clock")
    return "trigger" if reported else "checkpoint"


def _goals(figures: Figures, first: int) -> Iterator[_Goal]:
    part = throughput.PART
    yield _Goal("warm records/s, platform / floor", (part, "b/c", "warm"), "at least", 1.7)
    yield _Goal("warm records/s, platform / plain script", (part, "b/a", "warm"), "at least", 1.7)
    if first == _ROWS_OF_THE_GOAL:
        name = f"first {first:,} records from process start"
        yield _Goal(name, (part, "b", "first N"), "at most", 40.0)
    yield _Goal("first commit from process start", (part, "b", "first commit"), "at most", 15.0)
    batch = f"batch p50, {batch_clock(figures, FIXED)} clock"
    yield _Goal("near-empty batch", (FIXED, "b", batch), "at most", 0.5)
    name = "near-empty batch, platform / plain script"
    yield _Goal(name, (FIXED, "b/a", batch), "at most", 1 / 3)
    largest = f"batch max / p50, {batch_clock(figures, STEADY)} clock"
    yield _Goal("slowest batch / median, once warm", (STEADY, "b", largest), "at most", 2.0)
    # 5 %: what the sampling of a sound run spreads by; a leak of a day's batches would show.
    live = (STEADY, "b", "live heap growth")
    yield _Goal("memory flat: live heap, end / start of window", live, "at most", 5.0)
    rss = (STEADY, "b", "RSS growth over the second half")
    yield _Goal("memory flat: RSS over the window's second half", rss, "at most", 5.0)
