"""The size of a table from its newest checksum; whatever is unusual is left to the log's reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest_platform.adapters.table_checksum import size_by_checksum
from ingest_platform.adapters.table_log import SMALL_BYTES, TableSize
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.ledger_tables import write_batches

NONE = StorageEnvironment()


def put_checksum(path: str, version: int, files: int, small: int, **changes: object) -> None:
    """As Spark writes it beside a commit."""
    checksum = {
        "txnId": "x",
        "tableSizeBytes": 1000,
        "numFiles": files,
        "fileSizeHistogram": {
            "sortedBinBoundaries": [0, 8192, SMALL_BYTES, 2 * SMALL_BYTES],
            "fileCounts": [small - 1, 1, files - small, 0],
        },
        "allFiles": [{"path": "x" * 100_000}],
        **changes,
    }
    name = f"{version:020}.crc"
    Path(path, "_delta_log", name).write_text(json.dumps(checksum, separators=(",", ":")))


@pytest.fixture
def table(tmp_path) -> str:
    """Three commits."""
    path = str(tmp_path / "t")
    write_batches(path, *([(0, n, n + 1)] for n in range(3)))
    return path


def test_the_newest_version_behind_the_known_one(table):
    for version in range(3):
        put_checksum(table, version, files=version + 5, small=4)
    for known in (0, 1, 2):
        assert size_by_checksum(table, NONE, known) == TableSize(2, 7, 1000, 4)


def test_what_only_the_log_can_tell(table):
    """No version known; a table made anew; no checksum, as others write; another format."""
    assert size_by_checksum(table, NONE, 1) is None
    put_checksum(table, 1, files=5, small=4)
    assert size_by_checksum(table, NONE, 1) is None, "an older version's says nothing"
    put_checksum(table, 2, files=5, small=4)
    assert size_by_checksum(table, NONE, None) is None
    assert size_by_checksum(table, NONE, 7) is None
    histogram = {"sortedBinBoundaries": [0, 1024], "fileCounts": [5, 0]}
    put_checksum(table, 2, files=5, small=4, fileSizeHistogram=histogram)
    assert size_by_checksum(table, NONE, 2) is None
    Path(table, "_delta_log", f"{2:020}.crc").write_text('{"txnId":')
    assert size_by_checksum(table, NONE, 2) is None
