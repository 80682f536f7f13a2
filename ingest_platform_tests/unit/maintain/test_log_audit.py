"""The audit of ledgers, against a model that enumerates every offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ingest_platform.maintain.audit.commits import Commit, LogExtent
from ingest_platform.maintain.audit.log_audit import audit_log
from ingest_platform.maintain.audit.report import AuditReport, Kind, Level
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRanges, Positions
from ingest_platform_tests.ledger_tables import ledger

Offset = tuple[str, int, int]


def kinds(report: AuditReport) -> list[Kind]:
    return [f.kind for f in report.findings]


# --- the model -----------------------------------------------------------------------------


@dataclass
class Model:
    """The same audit, by counting every single offset."""

    content: list[Commit] = field(default_factory=list)
    at: dict[int, list[Commit]] = field(default_factory=dict)

    def add(self, commit: Commit) -> None:
        if commit.restored_to is not None:
            self.content = list(self.at[commit.restored_to])
        elif commit.repair is not None:
            kept = commit.repair.kept_version
            self.content = [c for c in self.content if not c.ledger or c.version <= kept]
        elif commit.ledger or commit.changes_data or commit.unreadable:
            self.content = [*self.content, commit]
        self.at[commit.version] = self.content

    @property
    def ledgers(self) -> list[Commit]:
        return [c for c in self.content if c.ledger]

    def counts(self) -> Counter[Offset]:
        return Counter(o for c in self.ledgers for o in offsets(c.ledger.offsets))

    def gaps(self) -> set[Offset]:
        counts = self.counts()
        ends: dict[tuple[str, int], list[int]] = {}
        for topic, partition, offset in counts:
            ends.setdefault((topic, partition), []).append(offset)
        return {
            (*key, offset)
            for key, found in ends.items()
            for offset in range(min(found), max(found))
            if not counts[(*key, offset)]
        }

    def doubled(self) -> set[Offset]:
        return {o for o, count in self.counts().items() if count > 1}

    def proven(self) -> set[Offset]:
        doubtful = {
            o for c in self.ledgers if c.ledger.imbalance() for o in offsets(c.ledger.offsets)
        }
        return {o for o, count in self.counts().items() if count == 1} - doubtful

    def session_findings(self) -> Iterator[Kind]:
        seen: list[tuple[str, int]] = []
        for commit in self.ledgers:
            session, batch = commit.ledger.session, commit.ledger.batch
            earlier = [b for s, b in seen if s == session]
            if seen and seen[-1][0] != session:
                yield Kind.SESSION_ORDER if earlier else Kind.SESSION_CHANGE
            if earlier and batch <= max(earlier):
                yield Kind.BATCH_ORDER
            seen.append((session, batch))


def offsets(ranges: OffsetRanges) -> Iterator[Offset]:
    for r in ranges:
        yield from ((r.topic, r.partition, offset) for offset in range(r.start, r.until))


def enumerated(items: Iterable) -> Counter[Offset]:
    return Counter((i.topic, i.partition, o) for i in items for o in range(i.start, i.until))


# --- random logs ---------------------------------------------------------------------------

ranges = st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 8)).map(
    lambda r: (r[0], r[1], r[1] + r[2])
)


@st.composite
def wild_ledgers(draw: st.DrawFn) -> Ledger:
    """Any ledger: ranges jump about, batches repeat, counts may be off."""
    parts = draw(st.lists(ranges, max_size=3, unique_by=lambda r: r[0]))
    return ledger(
        *parts,
        batch=draw(st.integers(0, 6)),
        session=draw(st.sampled_from("abc")),
        lost=draw(st.sampled_from([0, 0, 0, 1])),
    )


def repaired(version: int, kept_version: int, repair: int = 1, **changes: object) -> Commit:
    """A repair that keeps what `kept_version` and older ones hold."""
    record = RepairRecord("clicks", repair, kept_version, Positions(), Positions(), **changes)
    return Commit(version, operation="DELETE", repair=record, changes_data=True)


@st.composite
def wild_logs(draw: st.DrawFn) -> list[Commit]:
    """Ledgers of any kind between compactions, foreign writes, restores, repairs and holes."""
    log: list[Commit] = []
    model = Model()
    kinds = ["batch"] * 6 + ["optimize", "foreign", "restore", "repair", "missing"]
    version = draw(st.integers(0, 2))
    for _ in range(draw(st.integers(0, 14))):
        what, length = draw(st.sampled_from(kinds)), len(log)
        if what == "batch":
            log.append(Commit(version, ledger=draw(wild_ledgers())))
        elif what == "optimize":
            log.append(Commit(version, operation="OPTIMIZE"))
        elif what == "foreign":
            log.append(Commit(version, operation="MERGE", changes_data=True))
        elif what == "restore" and log:
            target = draw(st.sampled_from(log)).version
            log.append(Commit(version, operation="RESTORE", restored_to=target))
        elif what == "repair":
            kept = draw(st.sampled_from([-1, *(c.version for c in model.ledgers)]))
            log.append(repaired(version, kept, repair=version))
        for commit in log[length:]:
            model.add(commit)
        version += 1
    return log


@st.composite
def sound_logs(draw: st.DrawFn) -> list[Commit]:
    """What healthy drivers write: contiguous ranges, rising batches, sessions one after another."""
    positions = [draw(st.integers(0, 5)) for _ in range(draw(st.integers(1, 4)))]
    log: list[Commit] = []
    session, batch = 0, 0
    for _ in range(draw(st.integers(1, 20))):
        if draw(st.integers(0, 9)) == 0:
            session, batch = session + 1, 0
        widths = [draw(st.integers(0, 5)) for _ in positions]
        if sum(widths):  # a batch without records makes no commit
            parts = [
                (p, start, start + width)
                for p, (start, width) in enumerate(zip(positions, widths, strict=True))
            ]
            entry = ledger(*parts, batch=batch, session=str(session))
            log.append(Commit(len(log), ledger=entry))
            positions = [until for _, _, until in parts]
        batch += 1
        if draw(st.integers(0, 5)) == 0:
            log.append(Commit(len(log), operation="OPTIMIZE"))
    return log


def modelled(log: list[Commit]) -> Model:
    model = Model()
    for commit in log:
        model.add(commit)
    return model


@settings(max_examples=400, deadline=None)
@given(wild_logs())
def test_any_log_is_judged_as_by_enumeration(log):
    """Gaps, overlaps and proof are exact to the offset, whatever drivers and users did."""
    report, model = audit_log(log), modelled(log)

    def found(kind: Kind) -> Counter[Offset]:
        return enumerated(f for f in report.findings if f.kind is kind)

    assert found(Kind.GAP) == Counter(model.gaps())
    assert found(Kind.OVERLAP) == Counter(model.doubled())
    assert enumerated(report.proven) == Counter(model.proven())
    order = {Kind.SESSION_CHANGE, Kind.SESSION_ORDER, Kind.BATCH_ORDER}
    assert Counter(k for k in kinds(report) if k in order) == Counter(model.session_findings())
    foreign = {v for f in report.findings if f.kind is Kind.NO_LEDGER for v in f.versions}
    assert foreign == {c.version for c in model.content if not c.ledger}
    uneven = {v for f in report.findings if f.kind is Kind.IMBALANCE for v in f.versions}
    assert uneven == {c.version for c in model.ledgers if c.ledger.imbalance()}
    assert report.totals.read == sum(c.ledger.read for c in model.ledgers)
    assert report.totals.batches == len(model.ledgers)


@settings(max_examples=200, deadline=None)
@given(wild_logs())
def test_findings_name_the_versions_that_hold_them(log):
    """An operator goes from a finding to the commits; a wrong version would mislead a repair."""
    report, model = audit_log(log), modelled(log)
    holders: dict[Offset, set[int]] = {}
    for commit in model.ledgers:
        for offset in offsets(commit.ledger.offsets):
            holders.setdefault(offset, set()).add(commit.version)
    for finding in report.findings:
        inside = [
            (finding.topic, finding.partition, o)
            for o in range(finding.start or 0, finding.until or 0)
        ]
        if finding.kind is Kind.OVERLAP:
            assert set(finding.versions) == set().union(*(holders[o] for o in inside))
        if finding.kind is Kind.GAP:
            before = (finding.topic, finding.partition, finding.start - 1)
            after = (finding.topic, finding.partition, finding.until)
            assert finding.versions[0] in holders[before]
            assert finding.versions[1] in holders[after]
    for proven in report.proven:
        inside = [(proven.topic, proven.partition, o) for o in range(proven.start, proven.until)]
        versions = set().union(*(holders[o] for o in inside))
        assert (proven.first_version, proven.last_version) == (min(versions), max(versions))


@settings(max_examples=200, deadline=None)
@given(sound_logs())
def test_a_sound_log_is_clean_and_one_range_per_partition(log):
    """A false alarm would teach people to ignore the audit."""
    report = audit_log(log)
    assert report.clean, report.errors
    assert len({(p.topic, p.partition) for p in report.proven}) == len(report.proven)


@settings(max_examples=200, deadline=None)
@given(sound_logs(), st.data())
def test_no_single_lost_or_repeated_batch_stays_hidden(log, data):
    """Dropping or doubling any batch of a sound log is found; the last one by its checksum."""
    batches = [c for c in log if c.ledger]
    assume(batches)
    victim = data.draw(st.sampled_from(batches))
    assert not audit_log([c for c in log if c is not victim], LogExtent((), len(log) - 1)).clean
    again = [*log, Commit(len(log), ledger=victim.ledger)]
    assert Kind.OVERLAP in kinds(audit_log(again))
    assert Kind.BATCH_ORDER in kinds(audit_log(again))


# --- single cases --------------------------------------------------------------------------


def test_an_empty_log_proves_nothing_and_says_so():
    report = audit_log([])
    assert report.clean
    assert report.unproved == ("the log is empty: there is nothing to prove",)


def test_a_restore_undoes_what_came_after_its_target():
    """After a repair by RESTORE the same offsets come again; that is not a doubled range."""
    log = [
        Commit(0, ledger=ledger((0, 0, 5), batch=0)),
        Commit(1, ledger=ledger((0, 5, 9), batch=1)),
        Commit(2, operation="RESTORE", restored_to=0),
        Commit(3, ledger=ledger((0, 5, 12), batch=0, session="b")),
    ]
    report = audit_log(log)
    assert report.clean
    assert [(p.start, p.until) for p in report.proven] == [(0, 12)]
    assert report.totals.undone == 1
    assert Kind.RESTORED in kinds(report)


def test_delta_counting_other_rows_than_the_ledger_is_found():
    """A ledger that balances on paper but not with the files is a lie of the driver's."""
    log = [Commit(0, ledger=ledger((0, 0, 5)), rows=4)]
    report = audit_log(log)
    assert [f.kind for f in report.errors] == [Kind.ROWS_DIFFER]
    assert report.proven == ()


def test_known_gaps_of_a_compacted_topic_balance():
    report = audit_log([Commit(0, ledger=ledger((0, 0, 10), gaps=4, skipped=1, quarantined=2))])
    assert report.clean
    assert (report.totals.gaps, report.totals.skipped, report.totals.quarantined) == (4, 1, 2)


def test_an_imbalance_in_one_partition_is_located():
    report = audit_log([Commit(7, ledger=ledger((2, 0, 10), lost=1))], LogExtent((6,), 6))
    (finding,) = report.errors
    assert (finding.kind, finding.topic, finding.partition) == (Kind.IMBALANCE, "t", 2)
    assert (finding.start, finding.until, finding.versions) == (0, 10, (7,))


BATCH = ledger((0, 40, 50), batch=4)


@pytest.mark.parametrize(
    ("extent", "clean"),
    [
        (LogExtent((4, 9), 9), True),  # cleaned up to a checkpoint
        (LogExtent((4,), 4, cleanup_possible=True), True),
        (LogExtent((4,), 4, cleanup_possible=False), False),  # younger than its own retention
        (LogExtent((3,), 3), False),  # version 4 is in neither checkpoint nor entry
        (LogExtent(), False),
    ],
)
def test_a_log_that_begins_late_is_expired_or_damaged(extent, clean):
    """Log retention is normal and only said; a deleted entry is an error (fault 24)."""
    log = [Commit(v, ledger=ledger((0, 10 * v, 10 * v + 10), batch=v)) for v in range(5, 10)]
    report = audit_log(log, extent)
    assert report.clean == clean
    assert any("versions 0 to 4" in sentence for sentence in report.unproved)
    if not clean:
        assert [f.kind for f in report.errors] == [Kind.MISSING_ENTRY]


def test_an_entry_missing_in_the_middle_or_at_the_end_is_an_error():
    """Fault 24: Delta may still read such a table from a checkpoint, and nobody would notice."""
    log = [Commit(v, ledger=ledger((0, 10 * v, 10 * v + 10), batch=v)) for v in (0, 1, 3)]
    report = audit_log(log, LogExtent(newest_trace=4))
    missing = [f.versions for f in report.errors if f.kind is Kind.MISSING_ENTRY]
    assert missing == [(2,), (4,)]
    assert Kind.GAP in kinds(report)


def test_notes_come_after_errors_and_do_not_break_the_proof():
    log = [
        Commit(0, ledger=ledger((0, 0, 5), session="a")),
        Commit(1, ledger=ledger((0, 5, 6), session="b")),
        Commit(2, ledger=ledger((0, 7, 8), session="b", batch=1)),
    ]
    report = audit_log(log)
    assert [(f.kind, f.level) for f in report.findings] == [
        (Kind.GAP, Level.ERROR),
        (Kind.SESSION_CHANGE, Level.NOTE),
    ]


def test_versions_must_rise():
    with pytest.raises(ValueError, match="version 3 comes after version 3"):
        audit_log([Commit(3), Commit(3)])
