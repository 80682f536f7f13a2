"""The account of one batch: when it balances, and that it survives being written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange, OffsetRanges


def ledger(width: int = 10, **counts: int) -> Ledger:
    offsets = OffsetRanges((OffsetRange("t", 0, 5, 5 + width),))
    return Ledger("clicks", "s", 1, offsets, **{"read": 10, "written": 10, **counts})


@pytest.mark.parametrize(
    "balanced",
    [
        ledger(),
        ledger(written=7, quarantined=2, skipped=1),
        ledger(width=12, gaps=2),
        ledger(width=0, read=0, written=0),
        ledger(width=3, read=0, written=0, gaps=3),
    ],
)
def test_balanced(balanced: Ledger) -> None:
    assert balanced.imbalance() is None


@pytest.mark.parametrize(
    ("unbalanced", "equation"),
    [
        (ledger(written=9), "read 10 != written 9 + quarantined 0 + skipped 0 = 9"),
        (ledger(written=20), "read 10 != written 20"),
        (ledger(quarantined=1), "= 11"),
        (ledger(width=11), "offsets span 11 but 10 records were read and 0 gaps are known"),
        (ledger(width=9), "offsets span 9 but 10 records were read"),
        (ledger(width=12, gaps=1), "and 1 gaps are known"),
        (ledger(gaps=-1, width=9, read=11, written=11), "offsets span 9"),
    ],
)
def test_unbalanced(unbalanced: Ledger, equation: str) -> None:
    """The message has the numbers: whoever is woken by it starts from them."""
    assert equation in (unbalanced.imbalance() or "")


counts = st.integers(min_value=0, max_value=10**12)


@given(
    session=st.text(),
    stream=st.text(),
    ranges=st.dictionaries(
        st.tuples(st.text(min_size=1), st.integers(0, 999)),
        st.tuples(counts, st.integers(1, 10**9)),
    ),
    numbers=st.tuples(counts, counts, counts, counts),
    lag=st.dictionaries(st.text(), counts),
)
def test_what_is_written_is_read(
    session: str,
    stream: str,
    ranges: dict[tuple[str, int], tuple[int, int]],
    numbers: tuple[int, int, int, int],
    lag: dict[str, int],
) -> None:
    """The log is the only proof there is; a number that changes on the way breaks it."""
    offsets = OffsetRanges(
        tuple(sorted(OffsetRange(t, p, a, a + n) for (t, p), (a, n) in ranges.items()))
    )
    written = Ledger(stream, session, 1, offsets, *numbers, lag=lag)
    assert Ledger.from_user_metadata(written.to_user_metadata()) == written


@pytest.mark.parametrize(
    "text",
    [None, "", "nightly load", '{"ingest": 5}', '"ingest"', "[1]", '{"a": "ingest"}', '{"ingest"'],
)
def test_metadata_of_other_writers(text: str | None) -> None:
    """Users write their own `userMetadata`; it is none of ours, and no error."""
    assert Ledger.from_user_metadata(text) is None


@pytest.mark.parametrize("change", [{"v": 2}, {"read": None}, {"offsets": 5}, {"batch": "x"}])
def test_damaged_ledgers(change: dict[str, object]) -> None:
    """One that claims to be ours and cannot be read must not pass as another writer's."""
    body = json.loads(ledger().to_user_metadata())["ingest"]
    with pytest.raises(ValueError, match=r"."):
        Ledger.from_user_metadata(json.dumps({"ingest": {**body, **change}}))
