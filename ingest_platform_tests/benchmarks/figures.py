"""Every figure with its unit and one value a round, and what is quoted of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One measured quantity of one contender.

    Attributes:
        part: `throughput`, `fixed` or `steady`.
        contender: Key of a contender, or `b/a` for a ratio.
        name: What it is.
        unit: Of the values.
        values: One a round, in order.
    """

    part: str
    contender: str
    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The value to quote."""
        return median(self.values)

    def to_json(self) -> dict[str, Any]:
        """With median and spread."""
        return {
            "part": self.part,
            "contender": self.contender,
            "name": self.name,
            "unit": self.unit,
            "median": _short(self.median),
            "min": _short(min(self.values)),
            "max": _short(max(self.values)),
            "values": [_short(value) for value in self.values],
        }


class Figures:
    """All figures of a benchmark, in the order in which they were first met."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str, str], Figure] = {}

    def add(self, part: str, contender: str, name: str, value: float, unit: str) -> None:
        """Book the value of one round."""
        key = (part, contender, name)
        before = self._by_key[key].values if key in self._by_key else ()
        self._by_key[key] = Figure(part, contender, name, unit, (*before, value))

    def get(self, part: str, contender: str, name: str) -> Figure | None:
        """The figure, or None if it was not measured."""
        return self._by_key.get((part, contender, name))

    def ratio(self, part: str, over: str, under: str, name: str) -> None:
        """Book `over`'s value by `under`'s, round by round: both had the machine's same minutes."""
        a, b = self.get(part, over, name), self.get(part, under, name)
        if a is None or b is None:
            return
        values = tuple(x / y for x, y in zip(a.values, b.values, strict=False) if y)
        if values:
            key = (part, f"{over}/{under}", name)
            self._by_key[key] = Figure(*key, "ratio", values)

    def __iter__(self) -> Iterator[Figure]:
        """All of them."""
        return iter(list(self._by_key.values()))


def percentile(values: Sequence[float], percent: int) -> float:
    """Nearest rank: one of the values. There must be one."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def growth(times: Sequence[float], values: Sequence[float]) -> float:
    """What the straight line of least squares gains over the span of `times`, in `values`' unit."""
    mean_time, mean_value = sum(times) / len(times), sum(values) / len(values)
    spread = sum((t - mean_time) ** 2 for t in times)
    if not spread:
        return 0.0
    slope = (
        sum((t - mean_time) * (v - mean_value) for t, v in zip(times, values, strict=True)) / spread
    )
    return slope * (max(times) - min(times))


def _short(value: float) -> float:
    return float(f"{value:.6g}")
