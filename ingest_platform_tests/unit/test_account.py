"""The accounts of repairs and replays in `userMetadata`: what is written is what is read."""

from __future__ import annotations

import json

import pytest

from ingest_platform.model.account import RepairRecord, ReplayRecord
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange, OffsetRanges, Positions

REPAIR = RepairRecord(
    "clicks",
    3,
    17,
    Positions({"t": {0: 10, 11: 0}}),
    Positions({"t": {0: 15, 11: 0}}),
    OffsetRanges((OffsetRange("t", 0, 10, 15),)),
    ("t",),
)
REPLAY = ReplayRecord("clicks", 2, 5)


def test_they_come_back_as_they_were_written() -> None:
    """The audit of the next years reads them."""
    assert RepairRecord.from_user_metadata(REPAIR.to_user_metadata()) == REPAIR
    assert ReplayRecord.from_user_metadata(REPLAY.to_user_metadata()) == REPLAY


def test_neither_is_taken_for_another() -> None:
    """A repair that were read as a batch, or the other way round, would break the proof."""
    for text in (REPAIR.to_user_metadata(), REPLAY.to_user_metadata()):
        assert Ledger.from_user_metadata(text) is None
    assert RepairRecord.from_user_metadata(REPLAY.to_user_metadata()) is None
    assert ReplayRecord.from_user_metadata(REPAIR.to_user_metadata()) is None


@pytest.mark.parametrize("text", [None, "", "ingest_repair", '"ingest_repair"', "[]", "{}"])
def test_foreign_text_is_no_record(text: str | None) -> None:
    """Users write what they like into their own commits."""
    assert RepairRecord.from_user_metadata(text) is None


@pytest.mark.parametrize(
    "change", [{"v": 2}, {"kept": None}, {"start": {"t": {"x": 1}}}, {"recreated": 5}]
)
def test_a_garbled_record_is_an_error(change: dict[str, object]) -> None:
    """Passing over it would count batches that were taken out."""
    body = {**json.loads(REPAIR.to_user_metadata())["ingest_repair"], **change}
    with pytest.raises(ValueError, match=r"repair|invalid literal"):
        RepairRecord.from_user_metadata(json.dumps({"ingest_repair": body}))
