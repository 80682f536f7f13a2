"""The picture beside the results: speed, near-empty batches, steady batches, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLORS: Final = {"a": "#b5651d", "a2": "#e0a458", "b": "#1f6feb", "c": "#6b7280"}
_MEGA: Final = 1e6

Series = Mapping[str, Any]
Panel = Callable[[Axes, Series, Mapping[str, str]], None]


def draw(series: Series, titles: Mapping[str, str], path: Path) -> None:
    """Draw the panels for which there is something, two in a row.

    Args:
        series: As `bench_ingest` collects it; see the functions that make it.
        titles: Name by contender's key.
        path: Of the PNG file.
    """
    mpl.use("Agg")
    panels: list[tuple[str, Panel]] = [
        ("throughput", _progress),
        ("throughput", _memory),
        ("fixed", _near_empty),
        ("steady", _steady),
    ]
    wanted = [panel for part, panel in panels if series.get(part)]
    rows = -(-len(wanted) // 2)
    figure = Figure(figsize=(12, 4.2 * rows), layout="constrained")
    for number, panel in enumerate(wanted):
        axes = figure.add_subplot(rows, 2, number + 1)
        panel(axes, series, titles)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def _progress(axes: Axes, series: Series, titles: Mapping[str, str]) -> None:
    for course, label in _labelled(series["throughput"], titles):
        total, xs, ys = 0.0, [0.0], [0.0]
        for at, records in zip(course["commit_seconds"], course["commit_records"], strict=True):
            total += records / _MEGA
            xs.append(at)
            ys.append(total)
        axes.step(xs, ys, where="post", color=_COLORS[course["contender"]], label=label, lw=1.2)
    axes.set(
        title="Readable records, from process start", xlabel="seconds", ylabel="million records"
    )
    axes.legend(frameon=False)


def _memory(axes: Axes, series: Series, titles: Mapping[str, str]) -> None:
    for course, label in _labelled(series["throughput"], titles):
        color = _COLORS[course["contender"]]
        axes.plot(course["sample_seconds"], course["rss_mb"], color=color, label=label, lw=1.2)
    axes.set(title="Resident memory of the process tree", xlabel="seconds", ylabel="MB")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _near_empty(axes: Axes, series: Series, titles: Mapping[str, str]) -> None:
    for course, label in _labelled(series["fixed"], titles):
        seconds = sorted(_durations(course))
        shares = [100 * (i + 1) / len(seconds) for i in range(len(seconds))]
        color = _COLORS[course["contender"]]
        axes.step(seconds, shares, where="post", color=color, label=label, lw=1.2)
    axes.axvline(0.5, color="black", lw=0.8, ls=":")
    axes.set(title="Near-empty batches", xlabel="seconds at most", ylabel="% of batches")
    axes.set_xlim(left=0)
    axes.legend(frameon=False)


def _steady(axes: Axes, series: Series, titles: Mapping[str, str]) -> None:
    for course, label in _labelled(series["steady"], titles):
        color = _COLORS[course["contender"]]
        ended, seconds = course["ended_seconds"], _durations(course)
        axes.plot(ended, seconds, color=color, label=label, marker=".", lw=0.8)
    axes.set(title="Batches at a steady rate, once warm", xlabel="seconds", ylabel="seconds")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _durations(course: Mapping[str, Any]) -> list[float]:
    return course["seconds"]


def _labelled(
    courses: Sequence[Mapping[str, Any]], titles: Mapping[str, str]
) -> list[tuple[Mapping[str, Any], str | None]]:
    """Each course with a label, but only the first of each contender: one line in the legend."""
    seen: set[str] = set()
    labelled: list[tuple[Mapping[str, Any], str | None]] = []
    for course in courses:
        key = course["contender"]
        labelled.append((course, None if key in seen else f"({key}) {titles[key]}"))
        seen.add(key)
    return labelled
