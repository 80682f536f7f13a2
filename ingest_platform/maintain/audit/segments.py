"""How often each offset is covered by a set of half-open ranges, without enumerating offsets.

One difference array over the ranges' end points: O(n log n) in the number of ranges, however wide
they are. All arrays are int64 of one length per group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Segments:
    """Neighbouring stretches `[edges[i], edges[i + 1])`, each covered `counts[i]` times."""

    edges: Ints
    counts: Ints

    def where(self, mask: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Starts and ends of the maximal ranges over which `mask` (one per segment) holds."""
        padded = np.concatenate(([False], mask, [False]))
        change = np.flatnonzero(padded[1:] != padded[:-1])
        return self.edges[change[::2]], self.edges[change[1::2]]

    def at(self, starts: Ints, untils: Ints) -> Ints:
        """Coverage by other ranges whose ends are edges of this one, per segment of this one."""
        return _cover(self.edges, starts, untils)


def segments(starts: Ints, untils: Ints, *more_edges: Ints) -> Segments:
    """Count coverage between all end points; empty ranges and an empty input are fine."""
    edges = np.unique(np.concatenate((starts, untils, *more_edges)))
    return Segments(edges, _cover(edges, starts, untils))


def _cover(edges: Ints, starts: Ints, untils: Ints) -> Ints:
    if len(edges) < 2:
        return np.zeros(0, np.int64)
    change = np.zeros(len(edges), np.int64)
    np.add.at(change, np.searchsorted(edges, starts), 1)
    np.add.at(change, np.searchsorted(edges, untils), -1)
    return np.cumsum(change)[:-1]
