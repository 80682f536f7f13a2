"""The picture of inline against asynchronous compaction: each write, and their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ingest_platform_tests.benchmarks.compaction_course import WAYS, Course

_COLORS: Final = {"inline": "#b5651d", "async": "#1f6feb"}


def draw(courses: Sequence[Course], path: Path) -> None:
    """Write the PNG file."""
    mpl.use("Agg")
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    for number, panel in enumerate((_in_order, _distribution), start=1):
        axes = figure.add_subplot(1, 2, number)
        panel(axes, courses)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


def _in_order(axes: Axes, courses: Sequence[Course]) -> None:
    for way in WAYS:
        last = [c for c in courses if c.way == way][-1]
        numbers = range(1, len(last.seconds) + 1)
        axes.plot(numbers, last.seconds, color=_COLORS[way], label=way, marker=".", lw=0.9)
    axes.set(title="The writes of the last round", xlabel="write", ylabel="seconds")
    axes.set_ylim(bottom=0)


def _distribution(axes: Axes, courses: Sequence[Course]) -> None:
    for way in WAYS:
        seconds = sorted(s for c in courses if c.way == way for s in c.seconds)
        shares = [100 * (i + 1) / len(seconds) for i in range(len(seconds))]
        axes.step(seconds, shares, where="post", color=_COLORS[way], label=way, lw=1.3)
    axes.set(title="All rounds", xlabel="seconds at most", ylabel="% of writes")
    axes.set_xlim(left=0)
