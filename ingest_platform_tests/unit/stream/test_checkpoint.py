"""Checkpoint against table: whatever does not fit is refused before anything is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.errors import CheckpointDamagedError
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange, OffsetRanges
from ingest_platform.stream.checkpoint import Checkpoint

SESSION = "7e2b6a52-0000-4000-8000-000000000001"


def put(root: Path, name: str, text: str) -> None:
    file = root / "checkpoint" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def make(root: Path, ends: list[int], finished: int) -> Checkpoint:
    """A checkpoint of one partition: batch i ends at ends[i], batches up to `finished` are done."""
    put(root, "metadata", json.dumps({"id": SESSION}))
    put(root, "sources/0/0", '\0v1\n{"t":{"0":0}}')
    for batch, end in enumerate(ends):
        put(root, f"offsets/{batch}", f'v1\n{{"batchWatermarkMs":0}}\n{{"t":{{"0":{end}}}}}')
    for batch in range(finished + 1):
        put(root, f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')
    return Checkpoint(LocalObjects(root), "checkpoint")


def ledger(batch: int, start: int, until: int, session: str = SESSION) -> Ledger:
    offsets = OffsetRanges((OffsetRange("t", 0, start, until),))
    return Ledger("s", session, batch, offsets, until - start, until - start)


def test_ranges_are_those_of_the_write_ahead_log(tmp_path: Path) -> None:
    """The ledger must name what a replay would read, from the same bytes."""
    checkpoint = make(tmp_path, [10, 25], finished=1)
    assert checkpoint.ranges(0).to_ledger() == {"t": {"0": [0, 10]}}
    assert checkpoint.ranges(1).to_ledger() == {"t": {"0": [10, 25]}}
    assert (checkpoint.lineage(), checkpoint.planned(), checkpoint.finished()) == (SESSION, 1, 1)


def test_a_new_partition_starts_at_zero(tmp_path: Path) -> None:
    """Spark reads a partition that appears while the stream runs from its beginning."""
    checkpoint = make(tmp_path, [10], finished=0)
    put(tmp_path, "offsets/1", 'v1\n{}\n{"t":{"0":12,"1":5}}')
    assert checkpoint.ranges(1).to_ledger() == {"t": {"0": [10, 12], "1": [0, 5]}}


@pytest.mark.parametrize("text", ["", "v1", "v1\n{}", "v1\n{}\n{", "v1\n{}\n[]"])
def test_a_torn_offset_file_is_refused(tmp_path: Path, text: str) -> None:
    """Reading a part of it as the whole would lose the rest (fault 22)."""
    checkpoint = make(tmp_path, [10], finished=-1)
    put(tmp_path, "offsets/0", text)
    with pytest.raises(CheckpointDamagedError, match="offsets/0"):
        checkpoint.verify()


def test_agreement(tmp_path: Path) -> None:
    """The usual ends: after a finished batch, and after a kill on either side of the commit."""
    make(tmp_path, [10, 25], finished=1).agree_with(ledger(1, 10, 25), "s")
    (tmp_path / "checkpoint/commits/1").unlink()
    make_again = Checkpoint(LocalObjects(tmp_path), "checkpoint")
    make_again.agree_with(ledger(1, 10, 25), "s")  # killed between commit and commits/1
    make_again.agree_with(ledger(0, 0, 10), "s")  # killed before the commit


def test_a_new_stream_agrees_with_an_empty_table(tmp_path: Path) -> None:
    Checkpoint(LocalObjects(tmp_path), "checkpoint").agree_with(None, "s")


@pytest.mark.parametrize(
    ("ends", "finished", "table", "finding"),
    [
        ([], -1, ledger(3, 0, 9), "is missing"),
        ([10], 0, None, "table holds none"),
        ([10], 0, ledger(1, 10, 25), "rolled back"),
        ([10, 25], 1, ledger(0, 0, 10), "the table was rolled back"),
        ([10], 0, ledger(0, 0, 10, session="another"), "newest is another"),
        ([10], 0, ledger(0, 0, 11), "other offsets"),
    ],
)
def test_contradictions_are_refused(
    tmp_path: Path, ends: list[int], finished: int, table: Ledger | None, finding: str
) -> None:
    """Each of these would lose or double records if the stream went on (faults 22, 23)."""
    if ends:
        checkpoint = make(tmp_path, ends, finished)
    else:
        checkpoint = Checkpoint(LocalObjects(tmp_path), "checkpoint")
    with pytest.raises(CheckpointDamagedError, match=finding) as error:
        checkpoint.agree_with(table, "s")
    assert error.value.exit_code == 4
