"""The picture beside `bench_drift`'s results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLORS: Final = {"one_driver": "#b5651d", "platform": "#1f6feb"}
_PANELS: Final = (
    ("Batches (median of 20)", "seconds", "batch", "seconds"),
    ("Live heap after a full collection", "MB", "looked", "heap_mb"),
    ("Live files", "files", "looked", "files"),
    ("The table's log", "MB", "looked", "log_mb"),
)


def draw(series: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], path: Path) -> None:
    """Draw the forms' series, as `bench_drift` writes them, over the batches."""
    mpl.use("Agg")
    profiled = {key: course for key, course in series.items() if course.get("profiles")}
    rows = 3 if profiled else 2
    figure = Figure(figsize=(12, 3.75 * rows), layout="constrained")
    for number, (title, unit, over, shown) in enumerate(_PANELS, start=1):
        axes = figure.add_subplot(rows, 2, number)
        for key, course in series.items():
            axes.plot(course[over], course[shown], color=_COLORS[key], label=titles[key], lw=1.0)
        _dress(axes, title, unit)
    for number, (key, course) in enumerate(profiled.items(), start=len(_PANELS) + 1):
        axes = figure.add_subplot(rows, 2, number)
        causes = seconds_by_cause(course)
        axes.stackplot(course["looked"], *causes.values(), labels=list(causes))
        _dress(axes, f"A batch's time: {titles[key]}", "seconds")
        axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    figure.savefig(path, dpi=130)


def seconds_by_cause(course: Mapping[str, Any]) -> dict[str, list[float]]:
    """Seconds a batch that the query's thread spent on each cause, by look; what grew most last.

    They are the shares of the samples at a look, of the median batch since the look before.
    """
    looked: list[int] = course["looked"]
    profiles: list[dict[str, float]] = course["profiles"]
    batches = list(zip(course["batch"], course["seconds"], strict=True))
    spans = zip([0, *looked], looked, strict=False)
    typical = [median([s for n, s in batches if a <= n < b] or [0.0]) for a, b in spans]
    causes = {cause for profile in profiles for cause in profile}
    found = {
        cause: [p.get(cause, 0.0) * s for p, s in zip(profiles, typical, strict=True)]
        for cause in causes
    }
    return dict(sorted(found.items(), key=lambda item: item[1][-1] - item[1][0]))


def _dress(axes: Axes, title: str, unit: str) -> None:
    axes.set(title=title, xlabel="batch", ylabel=unit)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
