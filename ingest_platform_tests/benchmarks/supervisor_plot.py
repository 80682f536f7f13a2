"""The picture beside the supervisor's results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLOR = "#1f6feb"


def draw(series: Mapping[str, Any], path: Path) -> None:
    """Draw the parts that were measured: ticks, rounds, turnovers, recoveries."""
    mpl.use("Agg")
    panels = [
        ("tick", "milliseconds", "Tick of a table with 10,000 commits", "ms", 150.0),
        ("fleet", "wall", "A round of 200 tables' ticks", "s", 30.0),
        ("turnover", "seconds", "Planned turnover: longest gap between commits", "s", 11.0),
        ("recovery", "seconds", "SIGKILL to the next commit", "s", 60.0),
    ]
    wanted = [panel for panel in panels if series.get(panel[0])]
    if not wanted:
        return
    rows = -(-len(wanted) // 2)
    figure = Figure(figsize=(12, 4.2 * rows), layout="constrained")
    for number, (part, key, title, unit, goal) in enumerate(wanted):
        axes = figure.add_subplot(rows, 2, number + 1)
        _panel(axes, series[part][key], goal)
        axes.set(title=title, xlabel="run", ylabel=unit)
    figure.savefig(path, dpi=130)


def _panel(axes: Axes, values: list[float], goal: float) -> None:
    axes.plot(range(1, len(values) + 1), values, marker=".", lw=0.8, color=_COLOR)
    axes.axhline(goal, color="black", lw=0.8, ls=":")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
