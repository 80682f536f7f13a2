"""The offsets that table and quarantine really hold, as runs: memory follows the fragmentation.

A file of a batch holds a stretch of a partition's offsets, so a hundred million rows become a few
thousand runs; only a table whose rows were scattered on purpose costs 16 bytes per row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ingest_platform.maintain.audit.segments import Ints, Segments, segments

_MERGE_AT = 500_000


def _none() -> Ints:
    return np.zeros(0, np.int64)


class Runs:
    """The offsets of one partition: those seen, and those seen more than once."""

    def __init__(self) -> None:
        self.rows = 0
        self._starts, self._untils = _none(), _none()
        self._doubled: list[tuple[Ints, Ints]] = []
        self._pending: list[tuple[Ints, Ints]] = []
        self._pending_runs = 0

    def add(self, offsets: Ints) -> None:
        """Take offsets in rising order; equal ones count as doubled."""
        if not len(offsets):
            return
        self.rows += len(offsets)
        breaks = np.flatnonzero(np.diff(offsets) != 1)
        starts = offsets[np.concatenate(([0], breaks + 1))]
        untils = offsets[np.concatenate((breaks, [len(offsets) - 1]))] + 1
        self._pending.append((starts, untils))
        self._pending_runs += len(starts)
        if self._pending_runs > max(_MERGE_AT, len(self._starts)):
            self._merge()

    def seen(self) -> tuple[Ints, Ints]:
        """Starts and ends of the disjoint runs of offsets that are there, rising."""
        self._merge()
        return self._starts, self._untils

    def doubled(self) -> tuple[Ints, Ints]:
        """Starts and ends of the maximal ranges of offsets that are there more than once."""
        self._merge()
        starts = np.concatenate([_none(), *(s for s, _ in self._doubled)])
        untils = np.concatenate([_none(), *(u for _, u in self._doubled)])
        cover = segments(starts, untils)
        return cover.where(cover.counts > 0)

    def peel(self, starts: Ints, untils: Ints) -> tuple[Runs, Runs]:
        """Split: one copy of each offset in these ranges, as far as it is there, and the rest."""
        seen = self.seen()
        all_starts = np.concatenate([seen[0], *(s for s, _ in self._doubled)])
        all_untils = np.concatenate([seen[1], *(u for _, u in self._doubled)])
        cover = segments(all_starts, all_untils, starts, untils)
        taken = ((cover.counts > 0) & (cover.at(starts, untils) > 0)).astype(np.int64)
        return _runs(cover, taken), _runs(cover, cover.counts - taken)

    def _merge(self) -> None:
        if not self._pending:
            return
        starts = np.concatenate([self._starts, *(s for s, _ in self._pending)])
        untils = np.concatenate([self._untils, *(u for _, u in self._pending)])
        self._pending, self._pending_runs = [], 0
        self._count(segments(starts, untils))

    def _count(self, cover: Segments) -> None:
        """Keep the offsets that are covered, and each further copy of them."""
        self._starts, self._untils = cover.where(cover.counts > 0)
        for copies in range(2, int(cover.counts.max(initial=0)) + 1):
            self._doubled.append(cover.where(cover.counts >= copies))


def _runs(cover: Segments, counts: Ints) -> Runs:
    runs = Runs()
    runs._count(Segments(cover.edges, counts))
    return runs


class Held:
    """The offsets of all partitions, filled by a scan of the coordinate columns.

    Args:
        ends: Offset after the last one to look at, by topic and partition; what lies behind, and
            partitions that are not named, is passed over. Everything counts without it.
    """

    def __init__(self, ends: dict[tuple[str, int], int] | None = None) -> None:
        self.runs: dict[tuple[str, int], Runs] = {}
        self.rows = 0
        self._ends = ends

    def add(self, topic: str, partitions: Ints, offsets: Ints) -> None:
        """Take the coordinates of some rows of one topic, in any order."""
        order = np.lexsort((offsets, partitions))
        partitions, offsets = partitions[order], offsets[order]
        for partition, part in _by_value(partitions, offsets):
            kept = part
            if self._ends is not None:
                kept = part[: np.searchsorted(part, self._ends.get((topic, partition), 0))]
            self.rows += len(kept)
            if len(kept):
                self.runs.setdefault((topic, partition), Runs()).add(kept)

    def until(self, ends: dict[tuple[str, int], int]) -> Held:
        """A collector for the same offsets that passes over what lies behind `ends`."""
        bounded = Held(ends)
        bounded.runs = self.runs
        return bounded


def _by_value(keys: Ints, values: Ints) -> Iterator[tuple[int, Ints]]:
    """Split `values` where the sorted `keys` change."""
    if not len(keys):
        return
    bounds = np.flatnonzero(np.diff(keys)) + 1
    firsts = keys[np.concatenate(([0], bounds))].tolist()
    yield from zip(firsts, np.split(values, bounds), strict=True)
