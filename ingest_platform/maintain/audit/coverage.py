"""Which offsets the ledgers of a log cover: never, once or more often."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ingest_platform.maintain.audit.report import Finding, Kind, Level, ProvenRange
from ingest_platform.maintain.audit.segments import Ints, Segments, segments
from ingest_platform.model.offsets import OffsetRange

Key = tuple[str, int, int]  # topic, partition, incarnation of the topic

_VERSIONS_SHOWN = 10


def _column() -> array[int]:
    return array("q")


@dataclass
class _Partition:
    """The ranges of one partition, a column each: 24 bytes per commit instead of an object."""

    starts: array[int] = field(default_factory=_column)
    untils: array[int] = field(default_factory=_column)
    versions: array[int] = field(default_factory=_column)
    doubtful: array[int] = field(default_factory=_column)  # versions that do not balance

    def rows(self, mask: npt.NDArray[np.bool_]) -> _Partition:
        """The rows that `mask` marks."""

        def taken(column: array[int]) -> array[int]:
            return array("q", np.frombuffer(column, np.int64)[mask].tobytes())

        return _Partition(
            taken(self.starts), taken(self.untils), taken(self.versions), self.doubtful
        )


@dataclass(frozen=True)
class _Sorted:
    """A partition's ranges by start, with the running maximum of their ends.

    The maximum rises, so the ranges that reach into an interval are found by bisection.
    """

    starts: Ints
    untils: Ints
    versions: Ints
    reach: Ints

    @classmethod
    def of(cls, partition: _Partition) -> _Sorted:
        starts = np.frombuffer(partition.starts, np.int64)
        order = np.argsort(starts, kind="stable")
        untils = np.frombuffer(partition.untils, np.int64)[order]
        versions = np.frombuffer(partition.versions, np.int64)[order]
        return cls(starts[order], untils, versions, np.maximum.accumulate(untils))

    def versions_in(self, start: int, until: int) -> Ints:
        """Versions whose ranges share an offset with `[start, until)`, rising."""
        low = np.searchsorted(self.reach, start, side="right")
        high = np.searchsorted(self.starts, until, side="left")
        return np.unique(self.versions[low:high][self.untils[low:high] > start])

    def versions_around(self, start: int, until: int) -> tuple[int, ...]:
        """The version that ends at a gap's start and the one that begins at its end."""
        before = self.versions[np.searchsorted(self.reach, start, side="left")]
        after = self.versions[np.searchsorted(self.starts, until, side="left")]
        return (int(before), int(after))


class Coverage:
    """Collects ranges, then tells gaps, overlaps and proven ranges of each partition."""

    def __init__(self) -> None:
        self._partitions: dict[Key, _Partition] = {}

    def add(self, part: OffsetRange, version: int, *, balanced: bool, incarnation: int = 0) -> None:
        """Take one range of one commit; one that does not balance covers but does not prove.

        `incarnation` counts how often the topic was made anew before: its offsets began again then.
        """
        if part.until == part.start:
            return
        key = (part.topic, part.partition, incarnation)
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = _Partition()
        partition.starts.append(part.start)
        partition.untils.append(part.until)
        partition.versions.append(version)
        if not balanced:
            partition.doubtful.append(version)

    def only(self, intervals: Iterable[tuple[int, int]]) -> Coverage:
        """The part of it that versions in any of the closed `intervals` added."""
        kept = Coverage()
        wanted = list(intervals)
        for key, whole in self._partitions.items():
            versions = np.frombuffer(whole.versions, np.int64)
            hits = [(versions >= first) & (versions <= last) for first, last in wanted]
            part = whole.rows(np.logical_or.reduce(hits))
            if part.starts:
                kept._partitions[key] = part
        return kept

    def findings(
        self, accepted: Mapping[Key, tuple[Ints, Ints]] | None = None
    ) -> Iterator[Finding]:
        """Every maximal gap and overlap, by topic, partition and offset.

        `accepted` are offsets whose absence a person has accepted, as starts and ends.
        """
        given_up = accepted or {}
        for key, rows, cover, _ in self._by_partition():
            for start, until in _gaps(cover, given_up.get(key)):
                yield _gap(key, start, until, rows.versions_around(start, until))
            for start, until in _pairs(cover.where(cover.counts > 1)):
                yield _overlap(key, start, until, rows.versions_in(start, until))

    def proven(self) -> Iterator[ProvenRange]:
        """Every maximal range that one balanced commit per offset covers."""
        for key, rows, cover, doubt in self._by_partition():
            for start, until in _pairs(cover.where((cover.counts == 1) & (doubt == 0))):
                versions = rows.versions_in(start, until)
                first, last = int(versions[0]), int(versions[-1])
                yield ProvenRange(*key[:2], start, until, first, last, key[2])

    def ends(self) -> dict[tuple[str, int], int]:
        """Offset after the last one covered, by topic and partition, in any incarnation."""
        found: dict[tuple[str, int], int] = {}
        for key, part in self._partitions.items():
            found[key[:2]] = max(found.get(key[:2], 0), *part.untils)
        return found

    def batches(self) -> Iterator[tuple[Key, Ints, Ints, Ints]]:
        """Per partition: key, and starts, untils and versions of its ranges, by start."""
        for key in sorted(self._partitions):
            rows = _Sorted.of(self._partitions[key])
            yield key, rows.starts, rows.untils, rows.versions

    def _by_partition(self) -> Iterator[tuple[Key, _Sorted, Segments, Ints]]:
        for key in sorted(self._partitions):
            partition = self._partitions[key]
            rows = _Sorted.of(partition)
            bad = np.isin(rows.versions, np.frombuffer(partition.doubtful, np.int64))
            cover = segments(rows.starts, rows.untils)
            yield key, rows, cover, cover.at(rows.starts[bad], rows.untils[bad])


def _pairs(ranges: tuple[Ints, Ints]) -> Iterator[tuple[int, int]]:
    return zip(ranges[0].tolist(), ranges[1].tolist(), strict=True)


def _gaps(cover: Segments, accepted: tuple[Ints, Ints] | None) -> Iterator[tuple[int, int]]:
    if accepted is None:
        yield from _pairs(cover.where(cover.counts == 0))
        return
    first, last = cover.edges[0], cover.edges[-1]
    starts, untils = accepted[0].clip(first, last), accepted[1].clip(first, last)
    # Zero-width ranges cover nothing, but their ends must be edges all the same.
    gaps = cover.where(cover.counts == 0)
    split = segments(*gaps, starts, untils)
    yield from _pairs(split.where((split.counts > 0) & (split.at(starts, untils) == 0)))


def _gap(key: Key, start: int, until: int, versions: tuple[int, ...]) -> Finding:
    what = (
        f"{until - start} offsets of {key[0]}-{key[1]}, [{start}, {until}), are in no commit; "
        f"version {versions[0]} ends before them and version {versions[1]} begins after them"
    )
    return Finding(Kind.GAP, what, Level.ERROR, *key[:2], start, until, versions)


def _overlap(key: Key, start: int, until: int, found: Ints) -> Finding:
    versions = tuple(found.tolist())
    shown = ", ".join(map(str, versions[:_VERSIONS_SHOWN]))
    more = " and more" if len(versions) > _VERSIONS_SHOWN else ""
    what = (
        f"{until - start} offsets of {key[0]}-{key[1]}, [{start}, {until}), "
        f"are in more than one commit: versions {shown}{more}"
    )
    return Finding(Kind.OVERLAP, what, Level.ERROR, *key[:2], start, until, versions)
