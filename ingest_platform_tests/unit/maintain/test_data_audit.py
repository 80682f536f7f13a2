"""Ledgers against rows: every offset of a batch once in table or quarantine, or counted away."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_platform.maintain.audit import held as held_module
from ingest_platform.maintain.audit.commits import Commit, LogExtent
from ingest_platform.maintain.audit.data_audit import LISTED, RowCounts, audit_data
from ingest_platform.maintain.audit.held import Held, Runs
from ingest_platform.maintain.audit.log_audit import LogAudit
from ingest_platform.maintain.audit.report import AuditReport, Kind, Level
from ingest_platform_tests.ledger_tables import ledger
from ingest_platform_tests.unit.maintain.test_log_audit import enumerated


def held_of(rows: list[tuple[int, int]], topic: str = "t") -> Held:
    """Rows given as `(partition, offset)`."""
    held = Held()
    pairs = np.array(rows, np.int64).reshape(-1, 2)
    held.add(topic, pairs[:, 0], pairs[:, 1])
    return held


def audited(log: list[Commit], rows: list[tuple[int, int]], **counts: int) -> AuditReport:
    audit = LogAudit()
    for commit in log:
        audit.add(commit)
    extent = LogExtent(checkpoints=(100,))
    return audit_data(
        audit.report(extent),
        *audit.effective(),
        held_of(rows),
        RowCounts(len(rows), 0, **counts),
    )


def rows_of(*ranges: tuple[int, int, int]) -> list[tuple[int, int]]:
    return [(p, o) for p, start, until in ranges for o in range(start, until)]


# --- runs ----------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), max_size=12), max_size=8), st.integers(0, 6))
def test_runs_know_each_offset_that_came_once_and_more_often(pieces, merge_at):
    """However the rows are cut into pieces, and whenever runs are merged in between."""
    runs = Runs()
    with patch.object(held_module, "_MERGE_AT", merge_at):
        for piece in pieces:
            runs.add(np.array(sorted(piece), np.int64))
    counts = Counter(o for piece in pieces for o in piece)

    def offsets(ranges):
        return [o for s, u in zip(*ranges, strict=True) for o in range(s, u)]

    assert offsets(runs.seen()) == sorted(counts)
    assert offsets(runs.doubled()) == sorted(o for o, count in counts.items() if count > 1)
    assert runs.rows == counts.total()
    starts, untils = runs.seen()
    assert (starts[1:] > untils[:-1]).all(), "runs are maximal"


def test_a_bounded_collector_passes_over_what_lies_behind_and_unknown_partitions():
    """The quarantine may hold rejects of a batch whose table commit is still under way."""
    held = held_of([(0, 1)])
    bounded = held.until({("t", 0): 4})
    bounded.add("t", np.array([0, 0, 0, 1]), np.array([3, 4, 2, 0]))
    assert bounded.rows == 2
    assert [r.tolist() for r in held.runs["t", 0].seen()] == [[1], [4]]
    assert ("t", 1) not in held.runs


# --- comparison ----------------------------------------------------------------------------


@st.composite
def batches_and_rows(draw: st.DrawFn) -> tuple[list[Commit], list[tuple[int, int]]]:
    """A sound log without skips, and rows of which some are lost, doubled or nobody's."""
    positions = [draw(st.integers(0, 4)) for _ in range(2)]
    log: list[Commit] = []
    rows: list[tuple[int, int]] = []
    for version in range(draw(st.integers(1, 6))):
        parts = [(p, at, at + draw(st.integers(0, 5))) for p, at in enumerate(positions)]
        log.append(Commit(version, ledger=ledger(*parts, batch=version)))
        rows += rows_of(*parts)
        positions = [until for _, _, until in parts]
    lost = draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []
    kept = [r for r in rows if r not in lost]
    extra = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=3))
    return log, draw(st.permutations(kept + extra))


@settings(max_examples=400, deadline=None)
@given(batches_and_rows())
def test_rows_are_compared_with_ledgers_as_by_enumeration(case):
    """Lost, doubled and unclaimed rows are named to the offset."""
    log, rows = case
    report = audited(log, rows)
    claimed = {
        ("t", r.partition, o)
        for c in log
        for r in c.ledger.offsets
        for o in range(r.start, r.until)
    }
    there = Counter(("t", *row) for row in rows)

    def found(kind: Kind) -> Counter:
        return enumerated(f for f in report.findings if f.kind is kind)

    assert found(Kind.DATA_MISSING) == Counter(claimed - set(there))
    assert found(Kind.DATA_DOUBLED) == Counter({o for o, count in there.items() if count > 1})
    assert found(Kind.DATA_UNCLAIMED) == Counter(set(there) - claimed)
    assert report.data["missing"] == len(claimed - set(there))
    assert report.clean == (there == Counter(claimed))


def test_skipped_records_explain_as_many_absent_rows_and_no_more():
    log = [
        Commit(0, ledger=ledger((0, 0, 10), skipped=2)),
        Commit(1, ledger=ledger((0, 10, 12), batch=1)),
    ]
    assert audited(log, rows_of((0, 2, 12))).clean
    report = audited(log, rows_of((0, 3, 12)))
    (finding,) = report.errors
    assert (finding.kind, finding.versions) == (Kind.DATA_MISSING, (0,))
    assert "1 rows are missing beyond the 2 skipped" in finding.what
    (surplus,) = audited(log, rows_of((0, 1, 12))).errors
    assert (surplus.kind, surplus.versions) == (Kind.DATA_SURPLUS, (0,))


def test_rows_older_than_the_log_are_only_unproved():
    """Log entries expire after 30 days, rows stay for years."""
    log = [Commit(5, ledger=ledger((0, 20, 30), batch=5))]
    report = audited(log, rows_of((0, 0, 30), (1, 0, 3)))
    assert report.clean
    notes = [f for f in report.findings if f.kind is Kind.DATA_UNCLAIMED]
    assert [(f.partition, f.start, f.until, f.level) for f in notes] == [
        (0, 0, 20, Level.NOTE),
        (1, 0, 3, Level.NOTE),
    ]
    assert not audited(log, rows_of((0, 20, 31))).clean


def test_complete_data_settles_a_foreign_commit():
    """A user's MERGE leaves no ledger; only the rows can show that it did no harm."""
    log = [Commit(0, ledger=ledger((0, 0, 5))), Commit(1, operation="MERGE", changes_data=True)]
    assert audited(log, rows_of((0, 0, 5))).clean
    report = audited(log, rows_of((0, 0, 4)))
    assert [f.kind for f in report.errors] == [Kind.NO_LEDGER, Kind.DATA_MISSING]


def test_rows_without_coordinates_are_not_the_streams():
    report = audited(
        [Commit(0, ledger=ledger((0, 0, 5)))], rows_of((0, 0, 5)), without_coordinates=2
    )
    assert [f.kind for f in report.errors] == [Kind.DATA_UNCLAIMED]
    assert report.data["unclaimed"] == 2


def test_the_list_is_bounded_and_the_counts_are_exact():
    """A wrecked table must not print a million lines."""
    wide = 3 * LISTED
    log = [Commit(0, ledger=ledger((0, 0, wide)))]
    report = audited(log, [(0, o) for o in range(0, wide, 2)])
    assert len(report.errors) == LISTED + 1
    assert report.errors[-1].what == f"and {wide // 2 - LISTED} more"
    assert report.data["missing"] == wide // 2


@pytest.mark.parametrize("rows", [[], rows_of((0, 0, 3))])
def test_an_empty_table_or_log_is_compared_too(rows):
    report = audited([], rows)
    assert report.clean == (not rows)
