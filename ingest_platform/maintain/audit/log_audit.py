"""The audit of a Delta log: from commits to a report, without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ingest_platform.maintain.audit.batches import Batch, Lineage, Restore, order_findings
from ingest_platform.maintain.audit.commits import Commit, LogExtent
from ingest_platform.maintain.audit.coverage import Coverage, Key
from ingest_platform.maintain.audit.report import (
    AuditReport,
    Finding,
    Kind,
    Level,
    ProvenRange,
    Totals,
)
from ingest_platform.maintain.audit.segments import Ints
from ingest_platform.model.account import RepairRecord, ReplayRecord
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange

_NAMED = 5


def audit_log(commits: Iterable[Commit], extent: LogExtent | None = None) -> AuditReport:
    """Prove what a log proves.

    Args:
        commits: All commits that the log still has, by rising version.
        extent: What the listing of the log shows beside them.
    """
    audit = LogAudit()
    for commit in commits:
        audit.add(commit)
    return audit.report(extent or LogExtent())


class LogAudit:
    """Takes commits one by one, keeps columns of them, and reports.

    Memory is 24 bytes per range, so a log of 100,000 commits over 25 partitions takes some 80 MB.
    It stays usable after `report`: the audit of the data asks it for the batches.
    """

    def __init__(self) -> None:
        self._coverage = Coverage()
        self._batches: list[Batch] = []
        self._restores: list[Restore] = []  # of the whole table
        self._cuts: list[Restore] = []  # of the stream's batches: RESTOREs and repairs
        self._repairs: list[tuple[int, RepairRecord]] = []
        self._replays: list[tuple[int, ReplayRecord]] = []
        self._incarnations: dict[str, int] = {}
        # A finding about one commit counts only if no RESTORE undid that commit.
        self._of_commits: list[tuple[int, Finding]] = []
        self._of_batches: list[tuple[int, Finding]] = []
        self._missing: list[tuple[int, int]] = []
        self._first: int | None = None
        self._last: int | None = None
        self._commits = 0

    def add(self, commit: Commit) -> None:
        """Take the next commit.

        Raises:
            ValueError: Its version is not higher than that of the commit before.
        """
        if self._last is not None and commit.version <= self._last:
            raise ValueError(f"version {commit.version} comes after version {self._last}")
        if self._last is not None and commit.version > self._last + 1:
            self._missing.append((self._last + 1, commit.version - 1))
        if self._first is None:
            self._first = commit.version
        self._last = commit.version
        self._commits += 1
        if commit.restored_to is not None:
            self._restores.append(Restore(commit.version, commit.restored_to))
        if commit.repair is not None:
            self._add_repair(commit.version, commit.repair)
        elif commit.restored_to is not None:
            self._cuts.append(self._restores[-1])
        elif commit.ledger is not None:
            self._add_batch(commit, commit.ledger)
        elif commit.replay is not None:
            self._add_replay(commit, commit.replay)
        elif commit.unreadable or commit.changes_data:
            self._of_commits.append((commit.version, _foreign(commit)))

    def _add_batch(self, commit: Commit, ledger: Ledger) -> None:
        findings = list(_counts(commit, ledger))
        self._of_batches += [(commit.version, f) for f in findings]
        self._batches.append(Batch.of(commit.version, ledger, commit.timestamp))
        for part in ledger.offsets:
            incarnation = self._incarnations.get(part.topic, 0)
            self._coverage.add(part, commit.version, balanced=not findings, incarnation=incarnation)

    def _add_repair(self, version: int, repair: RepairRecord) -> None:
        self._cuts.append(Restore(version, repair.kept_version))
        before = self._repairs[-1][1] if self._repairs else None
        if before is not None and before.repair == repair.repair:
            # A RESTORE and the mark after it: one repair, and the last of its commits counts.
            self._repairs[-1] = (version, repair)
            return
        self._repairs.append((version, repair))
        for topic in repair.recreated:
            self._incarnations[topic] = self._incarnations.get(topic, 0) + 1

    def _add_replay(self, commit: Commit, replay: ReplayRecord) -> None:
        self._replays.append((commit.version, replay))
        if commit.rows is not None and commit.rows != replay.rows:
            what = (
                f"version {commit.version}, replay {replay.replay}: its record counts "
                f"{replay.rows} rows, Delta counts {commit.rows}"
            )
            finding = Finding(Kind.ROWS_DIFFER, what, versions=(commit.version,))
            self._of_commits.append((commit.version, finding))

    def effective(self) -> tuple[Coverage, list[Batch]]:
        """Coverage and batches that the table's content consists of, after RESTOREs and repairs."""
        if not self._cuts or self._last is None:
            return self._coverage, self._batches
        lineage = self.lineage_of_batches()
        kept = [b for b in self._batches if b.version in lineage]
        return self._coverage.only(lineage.intervals), kept

    def repairs(self) -> list[tuple[int, RepairRecord]]:
        """Repairs, with their versions, whose account still counts; oldest first."""
        applied = self.lineage_of_batches().applied
        return [(version, repair) for version, repair in self._repairs if version in applied]

    def foreign_since(self, version: int) -> list[int]:
        """Versions above `version` in which others than the stream's batches changed rows."""
        others = [v for v, f in self._of_commits if f.kind is Kind.NO_LEDGER]
        return sorted(v for v in (*others, *(v for v, _ in self._replays)) if v > version)

    def lineage_of_batches(self) -> Lineage:
        """The versions whose batches count."""
        return Lineage(self._cuts, self._last or 0)

    def report(self, extent: LogExtent) -> AuditReport:
        """The outcome so far."""
        coverage, batches = self.effective()
        proven = tuple(coverage.proven())
        report = AuditReport(
            first_version=self._first,
            last_version=self._last,
            proven=proven,
            unproved=tuple(self._unproved(proven)),
            totals=self._totals(batches),
            sessions=tuple(dict.fromkeys(b.session for b in batches)),
            incarnations=dict(self._incarnations),
            accepted={f"{p.topic}-{p.partition}": p.until for _, p in self._given_up()},
        )
        return report.with_findings(
            [
                *self._entry_findings(extent),
                *self._commit_findings(),
                *order_findings(batches),
                *coverage.findings(_as_columns(self._given_up())),
            ]
        )

    def _commit_findings(self) -> Iterator[Finding]:
        content, batches = Lineage(self._restores, self._last or 0), self.lineage_of_batches()
        yield from (f for version, f in self._of_commits if version in content)
        yield from (f for version, f in self._of_batches if version in batches)
        yield from (_replayed(v, replay) for v, replay in self._replays if v in content)
        repairs = dict(self._repairs)
        for cut in self._cuts:
            if cut.version in repairs:
                undone = sum(cut.target < b.version < cut.version for b in self._batches)
                yield from _repaired(cut.version, repairs[cut.version], undone)
        for restore in (r for r in self._restores if r.version not in repairs):
            undone = sum(restore.target < b.version < restore.version for b in self._batches)
            what = (
                f"version {restore.version} restored the table to version {restore.target}, which "
                f"undid {undone} batches"
            )
            yield Finding(Kind.RESTORED, what, Level.NOTE, versions=(restore.version,))

    def _entry_findings(self, extent: LogExtent) -> Iterator[Finding]:
        missing = list(self._missing)
        if self._first and _deleted_by_hand(self._first, extent):
            missing.insert(0, (0, self._first - 1))
        last = -1 if self._last is None else self._last
        if extent.newest_trace is not None and extent.newest_trace > last:
            missing.append((last + 1, extent.newest_trace))
        for first, last in missing:
            name = f"version {first} is" if first == last else f"versions {first} to {last} are"
            what = f"{name} missing from the log, though Delta's clean-up cannot have removed them"
            yield Finding(Kind.MISSING_ENTRY, what, versions=(first, last)[: last - first + 1])

    def _given_up(self) -> Iterator[tuple[int, OffsetRange]]:
        """Incarnation of the topic, and range."""
        times: dict[str, int] = {}
        counting = {version for version, _ in self.repairs()}
        for version, repair in self._repairs:
            if version in counting:
                yield from ((times.get(part.topic, 0), part) for part in repair.accepted)
            for topic in repair.recreated:
                times[topic] = times.get(topic, 0) + 1

    def _unproved(self, proven: tuple[ProvenRange, ...]) -> Iterator[str]:
        if self._first is None:
            yield "the log is empty: there is nothing to prove"
        elif self._first:
            yield (
                f"versions 0 to {self._first - 1} are no longer in the log (log retention): "
                "what they held is not proved by it"
            )
        for restore in self._restores:
            if self._first and restore.target < self._first:
                yield f"version {restore.version} restored version {restore.target}, expired since"
        begins = {(p.topic, p.partition): p.start for p in reversed(proven) if not p.incarnation}
        late = [f"{t}-{p} from {start}" for (t, p), start in sorted(begins.items()) if start]
        if late:
            named = ", ".join(late[:_NAMED])
            more = f" and {len(late) - _NAMED} more" if len(late) > _NAMED else ""
            yield f"nothing is claimed about offsets before the first proven ones: {named}{more}"

    def _totals(self, batches: list[Batch]) -> Totals:
        return Totals(
            commits=self._commits,
            batches=len(batches),
            undone=len(self._batches) - len(batches),
            others=self._commits - len(self._batches),
            read=sum(b.read for b in batches),
            written=sum(b.written for b in batches),
            quarantined=sum(b.quarantined for b in batches),
            skipped=sum(b.skipped for b in batches),
            gaps=sum(b.gaps for b in batches),
            max_event_time=max((b.max_event_time or "" for b in batches), default="") or None,
        )


def _deleted_by_hand(first: int, extent: LogExtent) -> bool:
    """Whether versions before `first` are missing, rather than cleaned up.

    Clean-up leaves a checkpoint from which the rest can be read, and removes nothing that is
    younger than the log retention.
    """
    readable = any(version >= first - 1 for version in extent.checkpoints)
    return not readable or extent.cleanup_possible is False


def _as_columns(
    accepted: Iterable[tuple[int, OffsetRange]],
) -> dict[Key, tuple[Ints, Ints]]:
    """Starts and ends of the accepted ranges, by partition and incarnation."""
    found: dict[Key, list[tuple[int, int]]] = {}
    for incarnation, part in accepted:
        key = (part.topic, part.partition, incarnation)
        found.setdefault(key, []).append((part.start, part.until))
    pairs = {key: np.array(ranges, np.int64) for key, ranges in found.items()}
    return {key: (columns[:, 0], columns[:, 1]) for key, columns in pairs.items()}


def _repaired(version: int, repair: RepairRecord, undone: int) -> Iterator[Finding]:
    what = (
        f"version {version}, repair {repair.repair}: took back {undone} batches after version "
        f"{repair.kept_version}; reading went on at {repair.start.to_json()}"
    )
    yield Finding(Kind.REPAIRED, what, Level.NOTE, versions=(version,))
    for topic in repair.recreated:
        what = f"version {version}, repair {repair.repair}: topic {topic} had been made anew"
        yield Finding(Kind.REPAIRED, what, Level.NOTE, topic, versions=(version,))
    for part in repair.accepted:
        what = (
            f"{part.width} offsets of {part.topic}-{part.partition}, [{part.start}, {part.until}), "
            f"were given up by repair {repair.repair}, in version {version}"
        )
        place = (part.topic, part.partition, part.start, part.until)
        yield Finding(Kind.ACCEPTED_GAP, what, Level.NOTE, *place, versions=(version,))


def _replayed(version: int, replay: ReplayRecord) -> Finding:
    what = f"version {version}, replay {replay.replay}: {replay.rows} rejected records became rows"
    return Finding(Kind.REPLAYED, what, Level.NOTE, versions=(version,))


def _foreign(commit: Commit) -> Finding:
    versions = (commit.version,)
    name = f"version {commit.version} ({commit.operation or 'no operation named'})"
    if commit.unreadable:
        return Finding(Kind.UNREADABLE_LEDGER, f"{name}: {commit.unreadable}", versions=versions)
    what = f"{name} changes rows without a ledger: only the data itself can show which"
    return Finding(Kind.NO_LEDGER, what, versions=versions)


def _counts(commit: Commit, ledger: Ledger) -> Iterator[Finding]:
    imbalance = ledger.imbalance()
    if imbalance:
        part = _only(ledger)
        yield Finding(
            Kind.IMBALANCE,
            f"version {commit.version}, batch {ledger.batch}: {imbalance}",
            topic=part.topic if part else None,
            partition=part.partition if part else None,
            start=part.start if part else None,
            until=part.until if part else None,
            versions=(commit.version,),
        )
    if commit.rows is not None and commit.rows != ledger.written:
        what = (
            f"version {commit.version}, batch {ledger.batch}: the ledger counts {ledger.written} "
            f"rows written, Delta counts {commit.rows}"
        )
        yield Finding(Kind.ROWS_DIFFER, what, versions=(commit.version,))


def _only(ledger: Ledger) -> OffsetRange | None:
    """The one range of a batch that has only one: then an imbalance can be located."""
    ranges = [r for r in ledger.offsets if r.width]
    return ranges[0] if len(ranges) == 1 else None
