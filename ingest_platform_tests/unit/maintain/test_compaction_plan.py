"""The compaction planner: what it takes, what it leaves, and that it comes to rest."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_platform.maintain.compaction.plan import Reason, packed, plan_compaction
from ingest_platform.model.data_file import DataFile
from ingest_platform.spec import CompactionSpec
from ingest_platform_tests.factories import NOW

MB = 1 << 20
RULES = CompactionSpec(target_file_size=64 * MB, hot_files=20)
OLD = timedelta(hours=2)
FRESH = timedelta(seconds=30)


def files(count: int, size: int, hour: str | None = "12", age: timedelta = OLD) -> list[DataFile]:
    """`count` files of one partition; of a table without partitions if `hour` is None."""
    partition = () if hour is None else (("hour", hour),)
    return [DataFile(partition, size, int((NOW - age).timestamp() * 1000))] * count


def plan(*held: list[DataFile], **rules):
    return plan_compaction(
        [file for some in held for file in some], RULES.model_copy(update=rules), NOW
    )


def test_a_settled_partition_of_small_files_is_compacted():
    found = plan(files(40, MB))
    [work] = found.work
    assert (work.files, work.bytes, work.saves) == (40, 40 * MB, 39)
    assert found.skipped == ()


def test_large_files_are_left_and_not_counted():
    [work] = plan(files(10, MB), files(3, 60 * MB)).work
    assert (work.files, work.bytes) == (10, 10 * MB)


def test_a_partition_still_being_written_waits_and_says_so():
    """Compacting the current hour each quarter would rewrite its rows four times."""
    found = plan(files(19, MB, "12", FRESH), files(19, MB, "11"))
    assert [w.partition for w in found.work] == [(("hour", "11"),)]
    assert [(s.partition, s.reason) for s in found.skipped] == [
        ((("hour", "12"),), Reason.BEING_WRITTEN)
    ]
    assert found.reasons() == {"is still being written": 1}


def test_many_small_files_do_not_wait():
    """A day's partition, or a table without any, never settles while the stream runs."""
    [work] = plan(files(20, MB, None, FRESH)).work
    assert work.partition == ()
    assert not work.settled


def test_what_was_packed_while_hot_is_not_packed_again_with_the_next_few():
    packed_before = files(3, 20 * MB, None, FRESH)
    [work] = plan(files(25, MB, None, FRESH), packed_before).work
    assert work.bytes == 25 * MB
    assert work.below <= 20 * MB


def test_middle_files_are_packed_once_they_fill_large_ones():
    [work] = plan(files(12, 16 * MB, None, FRESH)).work
    assert (work.files, work.saves) == (12, 9)


def test_few_small_files_are_not_worth_a_rewrite():
    found = plan(files(5, MB))
    assert found.batches == ()
    assert found.reasons() == {"has too few small files": 1}


def test_a_run_reads_its_budget_and_leaves_the_rest_for_the_next():
    found = plan(files(30, MB, "09"), files(20, MB, "10"), files(10, MB, "11"), max_bytes=40 * MB)
    assert [w.saves for w in found.work] == [29, 9]
    assert [s.reason for s in found.skipped] == [Reason.BUDGET]


def test_one_partition_beyond_the_budget_is_begun_with_its_smallest_files():
    """Else an unpartitioned table that was neglected for a week would never be compacted."""
    found = plan(files(30, MB, None), files(30, 3 * MB, None), max_bytes=40 * MB)
    [work] = found.work
    assert work.bytes <= 40 * MB
    assert work.files == 30


def test_one_partition_that_cannot_be_divided_is_taken_whole():
    [work] = plan(files(90, MB, None), max_bytes=40 * MB).work
    assert work.files == 90


def test_batches_bound_what_a_kill_undoes():
    found = plan(*(files(10, MB, f"{hour:02}") for hour in range(12)), commit_bytes=30 * MB)
    assert [batch.bytes for batch in found.batches] == [30 * MB] * 4
    assert len({p for batch in found.batches for p in batch.partitions}) == 12


def test_clustering_takes_settled_partitions_whole():
    found = plan(
        files(20, MB, "10"), files(2, 60 * MB, "10"), files(30, MB, "11", FRESH), z_order=("user",)
    )
    by_cluster = {batch.cluster: batch for batch in found.batches}
    assert by_cluster[True].bytes == 140 * MB
    assert by_cluster[False].partitions == ((("hour", "11"),),)


def test_packing_is_deltas():
    """`groupFilesIntoBins`: ascending, a bin ends before it exceeds, single files stay."""
    assert packed([1, 2, 3, 4, 9], 10) == (4, 1, 10)
    assert packed([6, 6, 6], 10) == (0, 0, 0)
    assert packed([], 10) == (0, 0, 0)


SIZES = st.integers(1, 100 * MB)
HELD = st.lists(
    st.builds(
        lambda hour, size, minutes: files(1, size, hour, timedelta(minutes=minutes))[0],
        st.sampled_from(["09", "10", "11"]),
        SIZES,
        st.integers(0, 120),
    ),
    max_size=120,
)


def after(held: list[DataFile], found) -> list[DataFile]:
    """The table after the plan is carried out, if sizes just add up."""
    left = list(held)
    for work in found.work:
        mine = sorted(
            (f for f in left if f.partition == work.partition and f.bytes < work.below),
            key=lambda f: f.bytes,
        )
        left = [f for f in left if f not in mine]
        total, count = 0, 0
        for file in [*mine, None]:
            if file is None or (count and total + file.bytes > RULES.target_file_size):
                left += files(1, total, work.partition[0][1], FRESH)
                total = count = 0
            if file:
                total, count = total + file.bytes, count + 1
    return left


@given(HELD)
def test_each_partition_is_either_compacted_or_has_a_reason(held):
    found = plan(held)
    named = [w.partition for w in found.work] + [s.partition for s in found.skipped]
    assert sorted(named) == sorted({f.partition for f in held})


@given(HELD)
def test_every_piece_of_work_makes_the_table_smaller(held):
    for work in plan(held).work:
        assert work.saves >= RULES.min_files
        assert work.bytes <= sum(f.bytes for f in held if f.partition == work.partition)


@settings(max_examples=60)
@given(HELD)
def test_compacting_again_and_again_comes_to_rest(held):
    """A plan that is never empty would start a JVM every quarter of an hour for nothing."""
    for _ in range(6):
        found = plan(held)
        if not found.batches:
            return
        held = after(held, found)
    raise AssertionError("there is always something left to do")
