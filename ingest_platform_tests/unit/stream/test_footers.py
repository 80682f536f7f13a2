"""Statistics from footers: a wrong bound makes readers skip files that hold what they look for."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.stream.footers import newest, statistics, without_dictionary


def footer_of(columns: dict[str, pa.Array], **options: object) -> pq.FileMetaData:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    file.seek(0)
    return pq.read_metadata(file)


def test_scalars_are_as_delta_writes_them() -> None:
    """Readers compare these JSON values with literals of the column's type."""
    at = datetime(2026, 1, 2, 3, 4, 5, 678_999, tzinfo=UTC)
    stats = statistics(
        footer_of(
            {
                "n": pa.array([3, 1, None]),
                "x": pa.array([0.5, -1.5, 2.0]),
                "at": pa.array([at, at, None], pa.timestamp("us", "UTC")),
                "day": pa.array([date(2026, 1, 2)] * 3),
                "s": pa.array(["b", "a", None]),
            }
        )
    )
    assert stats["numRecords"] == 3
    assert stats["minValues"] == {
        "n": 1,
        "x": -1.5,
        "at": "2026-01-02T03:04:05.678Z",
        "day": "2026-01-02",
        "s": "a",
    }
    assert stats["maxValues"]["s"] == "b"
    assert stats["nullCount"] == {"n": 1, "x": 0, "at": 1, "day": 0, "s": 1}


def test_types_without_bounds_have_null_counts_only() -> None:
    """Delta keeps no bounds for booleans and binaries, and a decimal is no JSON number."""
    stats = statistics(
        footer_of(
            {
                "flag": pa.array([True, None]),
                "raw": pa.array([b"\xff", b"a"]),
                "money": pa.array([Decimal("1.10"), None]),
                "wall": pa.array([datetime(2026, 1, 1), None], pa.timestamp("us")),
            }
        )
    )
    assert stats["minValues"] == {}
    assert stats["maxValues"] == {}
    assert stats["nullCount"] == {"flag": 1, "raw": 0, "money": 1, "wall": 1}


def test_only_nulls_have_no_bounds() -> None:
    """A bound made up for a column without values would hide the file from `IS NULL`."""
    stats = statistics(footer_of({"n": pa.array([None, None], pa.int64())}))
    assert stats["minValues"] == {}
    assert stats["nullCount"] == {"n": 2}


def test_bounds_span_row_groups() -> None:
    """A large file has several row groups, each with bounds of its own."""
    stats = statistics(footer_of({"n": pa.array([5, 9, 1, 3])}, row_group_size=2))
    assert (stats["minValues"]["n"], stats["maxValues"]["n"]) == (1, 9)


def test_nested_fields_nest_and_lists_are_left_out() -> None:
    """A bound inside a list would be one of elements, not of rows."""
    stats = statistics(
        footer_of({"o": pa.array([{"x": 1}, {"x": 4}]), "tags": pa.array([["a"], ["b", "c"]])})
    )
    assert stats["minValues"] == {"o": {"x": 1}}
    assert stats["maxValues"] == {"o": {"x": 4}}
    assert "tags" not in stats["nullCount"]


@given(st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=8))
def test_string_bounds_hold_for_every_value(values: list[str]) -> None:
    """However a long text is cut, it lies between its bounds in the byte order that readers use."""
    stats = statistics(footer_of({"s": pa.array(values)}))
    low, high = stats["minValues"].get("s"), stats["maxValues"].get("s")
    for value in values:
        assert low is None or low.encode() <= value.encode()
        assert high is None or value.encode() <= high.encode()


def test_columns_beyond_the_indexed_ones_are_left_out() -> None:
    """Statistics of hundreds of columns would make every commit large."""
    stats = statistics(footer_of({f"c{i:02d}": pa.array([i]) for i in range(40)}))
    assert len(stats["minValues"]) == 32


@pytest.mark.parametrize(("distinct", "expected"), [(10, set()), (400_000, {"s"})])
def test_a_given_up_dictionary_is_recognised(distinct: int, expected: set[str]) -> None:
    """Only columns whose dictionary outgrew its page are worth going without."""
    values = pa.array([f"{i % distinct:030d}" for i in range(400_000)])
    found = without_dictionary(
        [footer_of({"s": values}, dictionary_pagesize_limit=1 << 20, version="1.0")]
    )
    assert found == expected


def test_newest_of_several_files() -> None:
    """The ledger's max_event_time is that of the batch, not of one file; files may lack it."""
    stats = [{"maxValues": {"at": "2026-01-01T00:00:00.000Z"}}, {"maxValues": {}}, {}]
    assert newest(stats, "at") == "2026-01-01T00:00:00.000Z"
    assert newest([{}], "at") is None
