"""Robust statistics: neither one slow batch nor one idle hour may pass for a trend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

_SIGMA = 1.4826  # a normal distribution's standard deviation over its median absolute deviation
_SIGMAS = 6


@dataclass(frozen=True)
class Spread:
    """Median and median absolute deviation (MAD) of a sample, in the sample's unit."""

    median: float
    mad: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of a sample that is not empty."""
        middle = median(values)
        return cls(middle, median(abs(v - middle) for v in values))

    def bound(self, ratio: float) -> float:
        """The largest value that is still ordinary: both `ratio` times the median and 6 sigma.

        A steady sample has no spread to speak of, so the ratio guards it; a noisy one is guarded
        by its own spread.
        """
        return max(ratio * self.median, self.median + _SIGMAS * _SIGMA * self.mad)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Theil-Sen: the median slope over all pairs of points (x, y); 0 for fewer than two points."""
    pairs = combinations(points, 2)
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs if b[0] != a[0]]
    return median(slopes) if slopes else 0.0
