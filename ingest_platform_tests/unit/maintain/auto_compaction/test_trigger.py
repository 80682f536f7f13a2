"""Which partitions are due, by a snapshot's files."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.maintain.auto_compaction.optimize import partition_predicate
from ingest_platform.maintain.auto_compaction.trigger import Trigger, partitions_due

MB = 1024 * 1024


def files(*found: tuple[str, int]) -> pa.Table:
    return pa.table(
        {
            "size_bytes": pa.array([size for _, size in found], pa.int64()),
            "partition.p": pa.array([p for p, _ in found], pa.string()),
        }
    )


def test_settings_and_defaults_are_deltas() -> None:
    assert Trigger.from_conf(lambda _, default: default) == Trigger(50, 64 * MB, 128)
    settings = {
        "spark.databricks.delta.autoCompact.maxFileSize": str(32 * MB),
        "spark.databricks.delta.autoCompact.minNumFiles": "24",
    }
    assert Trigger.from_conf(settings.get) == Trigger(24, 16 * MB, 128)


def test_only_small_files_count_and_only_in_their_partition() -> None:
    found = files(*[("a", 1)] * 3, *[("a", 10)] * 5, *[("b", 1)] * 2, *[("c", 1)] * 4)
    assert partitions_due(found, Trigger(3, 10)) == [{"p": "c"}, {"p": "a"}]


def test_table_without_partitions_is_one() -> None:
    sizes = pa.table({"size_bytes": pa.array([1] * 5, pa.int64())})
    assert partitions_due(sizes, Trigger(5, 10)) == [{}]
    assert partitions_due(sizes, Trigger(6, 10)) == []


def test_one_file_alone_is_never_due() -> None:
    """With a limit of 0 Delta would rewrite nothing; an attempt for it would be for nothing."""
    assert partitions_due(files(("a", 1), ("b", 1), ("b", 1)), Trigger(0, 10)) == [{"p": "b"}]


def test_the_worst_partitions_come_first() -> None:
    found = files(*[("a", 1)] * 3, *[("b", 1)] * 5, *[("c", 1)] * 4)
    assert partitions_due(found, Trigger(2, 10, max_partitions=2)) == [{"p": "b"}, {"p": "c"}]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 20)), max_size=60),
    st.integers(0, 8),
)
def test_due_is_exactly_what_has_enough_small_files(
    found: list[tuple[str, int]], least: int
) -> None:
    due = partitions_due(files(*found), Trigger(least, 10))
    small = [p for p, size in found if size < 10]
    expected = {p for p in small if small.count(p) >= max(2, least)}
    assert {row["p"] for row in due} == expected


def test_predicate_names_each_partition_and_quotes_its_values() -> None:
    due = [{"day": "2026-11-01", "c": "O'Hara\\"}, {"day": None, "c": ""}]
    assert partition_predicate(due) == (
        "(`day` <=> '2026-11-01' AND `c` <=> 'O\\'Hara\\\\') OR (`day` <=> NULL AND `c` <=> '')"
    )
    assert partition_predicate([{}]) == ""
