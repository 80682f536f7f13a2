"""When a vacuum is due, and how files are found then."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.maintain.vacuum.plan import (
    Removal,
    VacuumMemory,
    Way,
    plan_vacuum,
    removed_files,
)
from ingest_platform.model.commit import Commit
from ingest_platform.spec import VacuumSpec
from ingest_platform_tests.factories import NOW, make_commit

RULES = VacuumSpec()
KEEP = timedelta(days=7)
NOW_MS = int(NOW.timestamp() * 1000)
LISTED = NOW_MS - 3_600_000


def optimize(version: int, files: int, age: timedelta) -> Commit:
    at = int((NOW - age).timestamp() * 1000)
    metrics = {"numRemovedFiles": files, "numAddedFiles": 1}
    return Commit(version, at, "OPTIMIZE", metrics)


def plan(memory: VacuumMemory, **changes):
    given_ = {"keep": KEEP, "created": None, "now": NOW, **changes}
    return plan_vacuum(memory, RULES, **given_)


def test_a_table_younger_than_its_retention_has_nothing_to_delete():
    found = plan(VacuumMemory(), created=NOW - timedelta(days=6))
    assert found.way is None
    assert "younger than its retention" in found.reason


def test_storage_is_listed_first_and_then_once_a_day():
    """Only a listing finds what killed drivers left behind."""
    assert plan(VacuumMemory()).way is Way.FULL
    assert plan(VacuumMemory(full_ms=NOW_MS - 25 * 3_600_000)).way is Way.FULL
    assert plan(VacuumMemory(full_ms=LISTED)).way is None


def test_expired_removals_are_looked_up_in_the_log():
    memory = VacuumMemory(full_ms=LISTED).with_commits(
        [optimize(0, 40, timedelta(days=8)), optimize(1, 5, timedelta(days=1))], 1
    )
    found = plan(memory)
    assert found.way is Way.LITE
    assert found.reason == "40 removed files have expired"
    assert [r.version for r in memory.expired(NOW, KEEP)] == [0]
    left = memory.vacuumed(Way.LITE, NOW, KEEP)
    assert [r.files for r in left.removals] == [5]
    assert left.full_ms == LISTED


def test_what_has_not_expired_waits_and_says_when():
    memory = VacuumMemory(full_ms=LISTED).with_commits([optimize(0, 5, timedelta(days=6))], 0)
    found = plan(memory)
    assert found.way is None
    assert found.reason == "the next 5 removed files expire at 2026-02-01T12:10+00:00"


def test_appends_alone_need_no_vacuum():
    memory = VacuumMemory(full_ms=LISTED).with_commits(map(make_commit, range(50)), 49)
    assert plan(memory).reason == "no commit has removed files"


def test_a_gap_in_what_was_seen_counts_as_a_removal():
    """After weeks of downtime not every commit is read again; leaving files is no option."""
    memory = VacuumMemory(version=3, full_ms=LISTED).with_commits(
        [make_commit(4000, timestamp_ms=NOW_MS - 8 * 86_400_000)], 4000
    )
    assert plan(memory).way is Way.LITE


def test_a_table_that_was_made_anew_is_looked_at_anew():
    memory = VacuumMemory(version=900, full_ms=LISTED).with_commits([make_commit(0)], 0)
    assert memory.version == 0
    assert plan(memory).way is Way.FULL


def test_every_writer_s_name_for_removed_files_is_known():
    for name in ("numRemovedFiles", "numTargetFilesRemoved", "num_removed_files"):
        assert removed_files(Commit(0, 0, "MERGE", {name: 3, "numAddedFiles": 9})) == 3
    assert removed_files(make_commit(0)) == 0


def test_a_memory_that_cannot_be_read_is_empty():
    for data in (None, b"", b"{", b"[]", b'{"v": 1}', b'{"version": 1, "removals": [[1]]}'):
        assert VacuumMemory.from_json(data) == VacuumMemory()


@given(
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 30)), max_size=40),
    st.integers(1, 5),
)
def test_no_removal_is_forgotten_however_the_looks_are_spread(removed, looks):
    """Minutes and counts of removing commits, seen in several looks: all must expire some time."""
    commits = [
        optimize(v, n, timedelta(minutes=20_000 - at)) for v, (at, n) in enumerate(sorted(removed))
    ]
    memory = VacuumMemory()
    for look in range(looks):
        seen = commits[: len(commits) * (look + 1) // looks]
        memory = memory.with_commits(seen, len(seen) - 1)
        memory = VacuumMemory.from_json(memory.to_json())
    assert sum(r.files for r in memory.removals) == sum(removed_files(c) for c in commits)
    assert list(memory.removals) == sorted(memory.removals, key=lambda r: r.until_ms)
    assert len({r.until_ms for r in memory.removals}) == len(memory.removals)
    later = NOW + timedelta(days=30)
    assert memory.expired(later, KEEP) == memory.removals
    assert memory.vacuumed(Way.LITE, later, KEEP).removals == ()


def test_removals_of_ten_minutes_are_one():
    memory = VacuumMemory().with_commits(
        [optimize(0, 2, timedelta(minutes=3)), optimize(1, 3, timedelta(minutes=2))], 1
    )
    assert [(r.files, r.version) for r in memory.removals] == [(5, 1)]
    assert isinstance(memory.removals[0], Removal)
