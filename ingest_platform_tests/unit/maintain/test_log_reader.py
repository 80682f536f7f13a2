"""From commit files in every shape that writers leave to what the audit takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest_platform.maintain.audit.commits import Commit
from ingest_platform.maintain.audit.log_folder import Entry, LocalLogFolder
from ingest_platform.maintain.audit.log_reader import (
    HEAD_BYTES,
    LogChangedError,
    list_log,
    parse_commit,
    read_commits,
)
from ingest_platform_tests.ledger_tables import ledger

BATCH = ledger((0, 0, 5), (1, 7, 9), batch=3)


def info(**fields) -> str:
    """Spark's first line of a commit."""
    return json.dumps({"commitInfo": {"timestamp": 1000, "operation": "WRITE", **fields}}) + "\n"


def add(*, data_change: bool = True, size: int = 10) -> str:
    """An `add` action whose stats quote a misleading text."""
    stats = json.dumps({"minValues": {"x": '"dataChange":true' + "y" * size}})
    body = {"path": "p", "dataChange": data_change, "stats": stats}
    return json.dumps({"add": body}, separators=(",", ":")) + "\n"


def parse(text: str) -> Commit:
    content = text.encode()
    return parse_commit(3, content[:HEAD_BYTES], lambda: content, modified=77)


def test_a_batch_of_spark():
    """Spark writes commitInfo first, numbers in metrics as strings, the ledger as a string."""
    commit = parse(
        info(
            userMetadata=BATCH.to_user_metadata(),
            operationMetrics={"numFiles": "2", "numOutputRows": "7"},
        )
        + add()
    )
    assert commit == Commit(3, 1000, "WRITE", BATCH, rows=7)


def test_the_ledger_is_found_without_reading_a_commits_files():
    """The fast path: a commit may list thousands of files after its commitInfo."""
    text = info(userMetadata=BATCH.to_user_metadata()) + add(size=HEAD_BYTES)

    def never() -> bytes:
        raise AssertionError("the whole commit was read")

    assert parse_commit(3, text.encode()[:HEAD_BYTES], never).ledger == BATCH


@pytest.mark.parametrize(
    "text",
    [
        add(size=HEAD_BYTES) + info(userMetadata=BATCH.to_user_metadata()),  # not first
        info(userMetadata=BATCH.to_user_metadata(), other="z" * HEAD_BYTES),  # longer than a head
        info(userMetadata=BATCH.to_user_metadata()).rstrip("\n"),  # last line without a newline
    ],
)
def test_a_commit_info_that_the_head_does_not_hold_is_still_found(text):
    assert parse(text).ledger == BATCH


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (info(operation="OPTIMIZE") + add(data_change=False), False),
        (info(operation="MERGE") + add(), True),
        (info(operation="DELETE") + add(size=HEAD_BYTES).replace("add", "remove"), True),
        (info(operation="SET TBLPROPERTIES") + '{"metaData":{}}\n', False),
        (info(operation="VACUUM END"), False),
        (add(), True),  # commitInfo is optional in the protocol
        (info(userMetadata="nightly ingest by hand") + add(), True),
        (info(userMetadata={"ingest": 1}) + add(), True),
    ],
)
def test_other_writers_commits_are_judged_by_their_actions(text, changes):
    """Operations have many names; `dataChange` is what says whether rows came or went."""
    commit = parse(text)
    assert (commit.ledger, commit.unreadable, commit.changes_data) == (None, None, changes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        '{"commitInfo": {"timestamp"',
        '{"commitInfo": 7}\n',
        info(userMetadata='{"ingest":{"v":99}}'),
        info(userMetadata='{"ingest":{"v":1,"stream":"s"}}'),
        info(userMetadata=BATCH.to_user_metadata().replace("[0,5]", "[5,0]")),
        info(userMetadata=BATCH.to_user_metadata().replace("[0,5]", "[0]")),
        info(userMetadata=BATCH.to_user_metadata().replace('"offsets":{', '"offsets":[],"x":{')),
    ],
)
def test_what_cannot_be_read_says_why_and_raises_nothing(text):
    """One bad commit must not end the audit of the others."""
    commit = parse(text)
    assert commit.ledger is None
    assert commit.unreadable


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"version": "4", "timestamp": None}, Commit(3, 1000, "RESTORE", restored_to=4)),
        ({"version": None, "timestamp": "x"}, Commit(3, 1000, "RESTORE", changes_data=True)),
    ],
)
def test_a_restore_names_its_target(parameters, expected):
    assert parse(info(operation="RESTORE", operationParameters=parameters) + add()) == expected


def test_times_prefer_the_one_that_delta_orders_by():
    assert parse(info(inCommitTimestamp=5)).timestamp == 5
    assert parse(add()).timestamp == 77


# --- listing -------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path) -> Path:
    folder = tmp_path / "_delta_log"
    (folder / "_sidecars").mkdir(parents=True)
    for name in (
        "00000000000000000002.json",
        "00000000000000000000.json",
        "00000000000000000001.json",
        "00000000000000000001.crc",
        ".00000000000000000001.json.crc",
        "00000000000000000001.checkpoint.parquet",
        "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        "00000000000000000000.checkpoint.0000000001.0000000002.parquet",
        "00000000000000000000.00000000000000000002.compacted.json",
        "_last_checkpoint",
        "00000000000000000009.json.tmp",
    ):
        (folder / name).write_text(info())
    return folder


def test_a_listing_knows_commits_from_everything_else_in_the_folder(log):
    """Checkpoints of three kinds, checksums, log compaction and leftovers."""
    listing = list_log(LocalLogFolder(log))
    assert [version for version, _ in listing.commits] == [0, 1, 2]
    assert listing.checkpoints == (0, 1, 2)
    assert listing.extent().newest_trace == 2


def test_an_entry_that_the_listing_passed_over_is_asked_for(log):
    """A folder is not listed atomically: a commit made meanwhile may show only its checksum."""

    class Passing(LocalLogFolder):
        def entries(self):
            return (e for e in super().entries() if not e.name.endswith("2.json"))

    folder = Passing(log)
    assert [version for version, _ in list_log(folder).commits] == [0, 1, 2]
    (log / "00000000000000000002.json").unlink()
    assert [version for version, _ in list_log(folder).commits] == [0, 1]


def test_an_entry_that_vanishes_is_told_apart_from_a_bad_one(log):
    folder = LocalLogFolder(log)
    listing = list_log(folder)
    (log / "00000000000000000000.json").unlink()
    with pytest.raises(LogChangedError):
        list(read_commits(folder, listing))


def test_no_folder_is_an_empty_log(tmp_path):
    assert list_log(LocalLogFolder(tmp_path / "none")).commits == ()


def test_parallel_reads_keep_the_order():
    """S3 is read by many threads, in windows."""

    class Slow:
        where = "memory"
        parallel = 8

        def entries(self):
            return (Entry(f"{v:020}.json", 0, v) for v in reversed(range(5000)))

        def read(self, name, limit=None):
            return info(operation=name).encode()

    folder = Slow()
    commits = list(read_commits(folder, list_log(folder)))
    assert [c.version for c in commits] == list(range(5000))
    assert commits[4321].operation == f"{4321:020}.json"
