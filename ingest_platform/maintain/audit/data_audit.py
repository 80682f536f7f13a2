"""The second proof: what the ledgers claim, against the coordinates of the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ingest_platform.maintain.audit.batches import Batch
from ingest_platform.maintain.audit.coverage import Coverage, Key
from ingest_platform.maintain.audit.held import Held, Runs
from ingest_platform.maintain.audit.report import AuditReport, Finding, Kind, Level
from ingest_platform.maintain.audit.segments import Ints, segments

LISTED = 1_000  # findings of one kind at most; the counts in the report stay exact


@dataclass(frozen=True)
class RowCounts:
    """Rows that a scan saw.

    Attributes:
        table: In the table.
        quarantine: In the quarantine, up to what the audited commits cover.
        without_coordinates: With a null topic, partition or offset.
    """

    table: int
    quarantine: int
    without_coordinates: int = 0


def audit_data(
    report: AuditReport, coverage: Coverage, batches: list[Batch], held: Held, rows: RowCounts
) -> AuditReport:
    """Compare every offset that the ledgers cover with the rows that are there.

    An offset may be absent only where a batch's ledger counts skipped records or legal gaps, and
    only as often as it counts them.

    Args:
        report: The outcome of the log's audit.
        coverage: Effective ranges of the log.
        batches: Effective batches of the log.
        held: Offsets of table and quarantine together.
        rows: What the scan counted.
    """
    runs = _by_incarnation(coverage, held)
    comparison = _Comparison(coverage, batches, runs)
    findings = {
        Kind.DATA_MISSING: [*comparison.missing_exactly(), *comparison.missing_somewhere()],
        Kind.DATA_SURPLUS: list(comparison.surplus()),
        Kind.DATA_DOUBLED: list(_doubled(runs)),
        Kind.DATA_UNCLAIMED: list(_unclaimed(coverage, runs, expired=bool(report.first_version))),
    }
    if rows.without_coordinates:
        what = f"{rows.without_coordinates} rows have no coordinates: the stream did not write them"
        findings[Kind.DATA_UNCLAIMED].append(Finding(Kind.DATA_UNCLAIMED, what))
    counts = {
        "table_rows": rows.table,
        "quarantine_rows": rows.quarantine,
        "expected_rows": sum(b.written + b.quarantined for b in batches),
        "missing": comparison.missing_rows,
        "surplus": comparison.surplus_rows,
        "doubled": _width(findings[Kind.DATA_DOUBLED]),
        "unclaimed": _width(findings[Kind.DATA_UNCLAIMED]) + rows.without_coordinates,
    }
    listed = [f for found in findings.values() for f in _bounded(found)]
    settled = report
    if not any(f.level is Level.ERROR for f in listed):
        settled = replace(report, findings=tuple(map(_settled, report.findings)))
    return settled.with_findings(listed, data=counts)


def _by_incarnation(coverage: Coverage, held: Held) -> dict[Key, Runs]:
    """The rows of each incarnation of a topic.

    Coordinates do not tell incarnations apart: each but the last takes one copy of every offset
    that its ledgers claim, and the last has the rest.
    """
    claims: dict[tuple[str, int], list[tuple[int, Ints, Ints]]] = {}
    for key, starts, untils, _ in coverage.batches():
        claims.setdefault(key[:2], []).append((key[2], starts, untils))
    found: dict[Key, Runs] = {}
    for place, runs in held.runs.items():
        rest, mine = runs, claims.get(place, [])
        for incarnation, starts, untils in mine[:-1]:
            found[(*place, incarnation)], rest = rest.peel(starts, untils)
        found[(*place, mine[-1][0] if mine else 0)] = rest
    return found


class _Comparison:
    """Rows expected and present, by table version: ledgers count per batch, not per partition."""

    def __init__(self, coverage: Coverage, batches: list[Batch], runs: Mapping[Key, Runs]) -> None:
        self._ranges = list(coverage.batches())
        self._runs = runs
        self._batches = {b.version: b for b in batches}
        self._base = min(self._batches, default=0)
        size = max(self._batches, default=-1) - self._base + 1
        expected, present = np.zeros(size, np.int64), np.zeros(size, np.int64)
        uncounted = np.zeros(size, np.int64)
        for batch in batches:
            expected[batch.version - self._base] = batch.written + batch.quarantined
            uncounted[batch.version - self._base] = batch.skipped + batch.gaps
        for key, starts, untils, versions in self._ranges:
            inside = _present(runs.get(key), starts, untils)
            np.add.at(present, versions - self._base, inside)
        self._difference = expected - present
        self._vague = uncounted > 0
        self.missing_rows = int(self._difference.clip(min=0).sum())
        self.surplus_rows = int((-self._difference).clip(min=0).sum())

    def missing_exactly(self) -> Iterator[Finding]:
        """Absent offsets of batches that skipped nothing: each of them is lost."""
        lost = (self._difference > 0) & ~self._vague
        for key, starts, untils, versions in self._ranges:
            mine = lost[versions - self._base]
            if not mine.any():
                continue
            for start, until in _outside(starts[mine], untils[mine], self._runs.get(key)):
                what = (
                    f"{until - start} offsets of {key[0]}-{key[1]}, [{start}, {until}), are in "
                    "neither table nor quarantine"
                )
                yield Finding(Kind.DATA_MISSING, what, Level.ERROR, *key[:2], start, until)

    def missing_somewhere(self) -> Iterator[Finding]:
        """Batches with skipped records or gaps, where more is absent than these explain."""
        for index in np.flatnonzero((self._difference > 0) & self._vague).tolist():
            batch = self._batches[index + self._base]
            what = (
                f"version {batch.version}, batch {batch.number}: {self._difference[index]} rows "
                f"are missing beyond the {batch.skipped} skipped records and {batch.gaps} gaps "
                "that its ledger counts"
            )
            yield Finding(Kind.DATA_MISSING, what, versions=(batch.version,))

    def surplus(self) -> Iterator[Finding]:
        """Batches that left more offsets than their ledgers count."""
        for index in np.flatnonzero(self._difference < 0).tolist():
            batch = self._batches[index + self._base]
            what = (
                f"version {batch.version}, batch {batch.number}: {-self._difference[index]} more "
                "offsets are there than its ledger counts"
            )
            yield Finding(Kind.DATA_SURPLUS, what, versions=(batch.version,))


def _doubled(runs: Mapping[Key, Runs]) -> Iterator[Finding]:
    for key in sorted(runs):
        for start, until in _pairs(runs[key].doubled()):
            what = (
                f"{until - start} offsets of {key[0]}-{key[1]}, [{start}, {until}), "
                "are there more than once"
            )
            yield Finding(Kind.DATA_DOUBLED, what, Level.ERROR, *key[:2], start, until)


def _unclaimed(coverage: Coverage, runs: Mapping[Key, Runs], *, expired: bool) -> Iterator[Finding]:
    """Rows outside of every ledger; before the first one they are only unproved if it expired."""
    claimed = {key: (starts, untils) for key, starts, untils, _ in coverage.batches()}
    for key in sorted(runs):
        mine = claimed.get(key)
        first = int(mine[0][0]) if mine else None
        cover = segments(*runs[key].seen(), *(mine or ()))
        inside = cover.at(*mine) if mine else np.zeros_like(cover.counts)
        for start, until in _pairs(cover.where((cover.counts > 0) & (inside == 0))):
            old = expired and (first is None or until <= first)
            why = "whose log entries have expired" if old else "that no ledger claims"
            what = (
                f"rows of {until - start} offsets of {key[0]}-{key[1]}, [{start}, {until}), {why}"
            )
            level = Level.NOTE if old else Level.ERROR
            yield Finding(Kind.DATA_UNCLAIMED, what, level, *key[:2], start, until)


def _present(runs: Runs | None, starts: Ints, untils: Ints) -> Ints:
    """How many offsets of each range are there."""
    if runs is None:
        return np.zeros(len(starts), np.int64)
    run_starts, run_untils = runs.seen()
    before = np.concatenate(([0], np.cumsum(run_untils - run_starts)))

    def below(offsets: Ints) -> Ints:
        index = np.searchsorted(run_starts, offsets, side="left")
        last = np.maximum(index - 1, 0)
        cut = np.maximum(run_untils[last] - offsets, 0)  # of the run that reaches over the offset
        return before[index] - np.where(index > 0, cut, 0)

    return below(untils) - below(starts)


def _outside(starts: Ints, untils: Ints, runs: Runs | None) -> Iterator[tuple[int, int]]:
    """Maximal parts of the ranges that no run covers."""
    seen = runs.seen() if runs else (np.zeros(0, np.int64),) * 2
    cover = segments(starts, untils, *seen)
    yield from _pairs(cover.where((cover.counts > 0) & (cover.at(*seen) == 0)))


def _pairs(ranges: tuple[Ints, Ints]) -> Iterator[tuple[int, int]]:
    return zip(ranges[0].tolist(), ranges[1].tolist(), strict=True)


def _width(findings: list[Finding]) -> int:
    return sum((f.until or 0) - (f.start or 0) for f in findings)


def _bounded(findings: list[Finding]) -> list[Finding]:
    if len(findings) <= LISTED:
        return findings
    rest = findings[LISTED:]
    level = Level.ERROR if any(f.level is Level.ERROR for f in rest) else Level.NOTE
    return [*findings[:LISTED], Finding(rest[0].kind, f"and {len(rest)} more", level)]


def _settled(finding: Finding) -> Finding:
    """A foreign commit after which every row is still there once did no harm to completeness."""
    if finding.kind is not Kind.NO_LEDGER:
        return finding
    what = f"{finding.what}; the data holds every offset once all the same"
    return replace(finding, what=what, level=Level.NOTE)
