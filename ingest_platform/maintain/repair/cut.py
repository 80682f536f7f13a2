"""Where the last good state of a table ends: a version, and an offset for every partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ingest_platform.maintain.audit.batches import Batch, Lineage
from ingest_platform.maintain.audit.coverage import Coverage
from ingest_platform.maintain.audit.report import AuditReport, Kind
from ingest_platform.maintain.audit.segments import Ints
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.offsets import Positions

Place = tuple[str, int]

# Errors at offsets where ledgers do not join; at offsets of the data; and of one commit.
_JOINTS = {Kind.GAP, Kind.OVERLAP}
_OF_DATA = {Kind.DATA_MISSING, Kind.DATA_DOUBLED, Kind.DATA_UNCLAIMED}
_OF_COMMITS = {
    *(Kind.IMBALANCE, Kind.ROWS_DIFFER, Kind.UNREADABLE_LEDGER, Kind.BATCH_ORDER),
    *(Kind.SESSION_ORDER, Kind.DATA_SURPLUS, Kind.DATA_MISSING),
}
MENDED_BY_CUTTING = _JOINTS | _OF_DATA | _OF_COMMITS


@dataclass(frozen=True)
class History:
    """What the log shows of one stream, after all RESTOREs and repairs.

    Attributes:
        first_version: Oldest version that the log still has.
        last_version: Newest version.
        batches: Batches that count, by rising version.
        coverage: Their offsets.
        repairs: Repairs that count, with their versions, oldest first.
        incarnations: How often a topic was made anew.
        lineage: The versions whose batches count.
    """

    first_version: int
    last_version: int
    batches: list[Batch]
    coverage: Coverage
    repairs: list[tuple[int, RepairRecord]]
    incarnations: Mapping[str, int]
    lineage: Lineage

    def ranges(self) -> Iterator[tuple[Place, Ints, Ints, Ints]]:
        """Per partition of each topic's present incarnation: starts, untils, versions."""
        for key, starts, untils, versions in self.coverage.batches():
            if key[2] == self.incarnations.get(key[0], 0):
                order = np.argsort(versions, kind="stable")
                yield key[:2], starts[order], untils[order], versions[order]


def last_good_version(
    history: History, report: AuditReport, *, since_ms: int | None, to_version: int | None
) -> int:
    """The newest version before everything that is wrong.

    Args:
        history: Of the stream.
        report: Its errors; those that a cut cannot mend are passed over.
        since_ms: What was committed at this time (milliseconds since the epoch) or later is wrong.
        to_version: What was committed after this version is wrong.
    """
    bad = [*_bad_versions(history, report)]
    if since_ms is not None:
        bad += [b.version for b in history.batches if b.timestamp >= since_ms]
    if to_version is not None:
        bad.append(to_version + 1)
    found = min([history.last_version, *(version - 1 for version in bad)])
    if not history.lineage.undone(found):
        return found
    # That version was undone: what counts of it is what a still older one holds.
    return max((b.version for b in history.batches if b.version <= found), default=-1)


def _bad_versions(history: History, report: AuditReport) -> Iterator[int]:
    errors = report.errors
    if any(finding.kind in _JOINTS for finding in errors):
        yield from first_that_does_not_join(history)
    for finding in errors:
        if finding.kind in _OF_COMMITS and finding.versions:
            yield finding.versions[0]
        elif finding.kind in _OF_DATA and finding.start is not None:
            place = (finding.topic or "", finding.partition or 0)
            yield from _first_beyond(history, place, finding.start)


def first_that_does_not_join(history: History) -> Iterator[int]:
    """Per partition, the first version that begins elsewhere than where the one before ended."""
    resumed = _resumed(history)
    for place, starts, untils, versions in history.ranges():
        before = np.concatenate((starts[:1], np.maximum.accumulate(untils)[:-1]))
        odd = starts != before
        for version, start in resumed.get(place, {}).items():
            odd &= ~((versions > version) & (starts == start))
        if odd.any():
            yield int(versions[odd][0])


def _resumed(history: History) -> dict[Place, dict[int, int]]:
    """Where repairs let partitions go on, by version: there, another start is no fault."""
    found: dict[Place, dict[int, int]] = {}
    for version, record in history.repairs:
        for topic, partition, start in record.start:
            found.setdefault((topic, partition), {})[version] = start
    return found


def _first_beyond(history: History, place: Place, offset: int) -> Iterator[int]:
    """The first version that holds anything at or after an offset."""
    for found, _, untils, versions in history.ranges():
        later = versions[untils > offset]
        if found == place and len(later):
            yield int(later[0])


def kept_positions(history: History, version: int) -> dict[Place, int]:
    """Where each partition ends in what the versions up to `version` hold."""
    ends: dict[Place, int] = {}
    base = -1
    for at, record in history.repairs:
        if at <= version:
            base = at
            ends = {(topic, partition): start for topic, partition, start in record.start}
    for place, starts, untils, versions in history.ranges():
        kept = untils[(versions <= version) & (versions > base)]
        if len(kept):
            ends[place] = int(kept.max())
        elif place not in ends:
            # What came before, in expired log entries or nowhere, ended where that began.
            ends[place] = int(starts[0])
    return ends


def reaches_back(history: History, version: int) -> bool:
    """Whether a batch after `version` holds offsets that the versions up to it hold as well.

    Such rows cannot be told from the good ones by their coordinates.
    """
    return bool(_reaching_back(history, version))


def below_all(history: History, version: int) -> int:
    """The newest version, not above this one, that no later batch reaches back of."""
    while back := _reaching_back(history, version):
        firsts = [first for place, start in back for first in _first_beyond(history, place, start)]
        version = min(firsts) - 1
    return version


def _reaching_back(history: History, version: int) -> list[tuple[Place, int]]:
    """Per partition, the lowest offset of the later batches, where earlier ones hold it, too."""
    kept = kept_positions(history, version)
    found: list[tuple[Place, int]] = []
    for place, starts, _, versions in history.ranges():
        later = starts[versions > version]
        if len(later) and later.min() < kept.get(place, 0):
            found.append((place, int(later.min())))
    return found


def positions(ends: Iterable[tuple[Place, int]]) -> Positions:
    """As positions."""
    found: dict[str, dict[int, int]] = {}
    for (topic, partition), end in ends:
        found.setdefault(topic, {})[partition] = end
    return Positions(found)
