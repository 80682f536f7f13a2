"""How many files a table has, from the checksum that Spark writes beside each commit.

delta-rs reads every commit since the log's last checkpoint for that, some hundred requests; this
takes two.

Format: https://github.com/delta-io/delta/blob/master/PROTOCOL.md (Version Checksum File).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

from ingest_platform.adapters.s3_reads import NotSmoothError, s3_reads
from ingest_platform.adapters.table_log import SMALL_BYTES, TableSize
from ingest_platform.spec.environment import StorageEnvironment

_HEAD_BYTES: Final = 65_536
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_FILES: Final = b',"allFiles":'  # the last member, and the only long one


def size_by_checksum(path: str, storage: StorageEnvironment, known: int | None) -> TableSize | None:
    """The size of the table's newest version; None where only its log can tell.

    Args:
        path: Of the table.
        storage: How to reach S3.
        known: A version that the table had a while ago: newer ones are looked for behind it.
    """
    if known is None:
        return None
    log: _Log = _S3Log(path, storage) if path.startswith("s3a://") else _LocalLog(path)
    try:
        return _size(log, known)
    except (NotSmoothError, OSError, ValueError, KeyError, TypeError):
        return None  # whatever it is, the reader of the log says it better


def _size(log: _Log, known: int) -> TableSize | None:
    names = log.names_from(known)
    versions = [int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))]
    if known not in versions:
        return None  # the table was made anew, or its log cleaned up
    newest = max(versions)
    head = log.head(f"{newest:020}.crc") if f"{newest:020}.crc" in names else None
    return None if head is None else _parse(newest, head)


def _parse(version: int, head: bytes) -> TableSize | None:
    before, comma, _ = head.partition(_FILES)
    found: dict[str, Any] = json.loads(before + b"}" if comma else head)
    histogram = found["fileSizeHistogram"]
    bounds, counts = histogram["sortedBinBoundaries"], histogram["fileCounts"]
    if SMALL_BYTES not in bounds:
        return None
    small = sum(counts[: bounds.index(SMALL_BYTES)])
    return TableSize(version, found["numFiles"], found["tableSizeBytes"], small)


class _Log(Protocol):
    """The `_delta_log` of one table."""

    def names_from(self, version: int) -> list[str]:
        """Names of the files of this version and later ones."""
        ...

    def head(self, name: str) -> bytes | None:
        """The beginning of a file."""
        ...


class _S3Log:
    def __init__(self, path: str, storage: StorageEnvironment) -> None:
        bucket, _, prefix = path.removeprefix("s3a://").partition("/")
        self._reads, self._folder = s3_reads(storage, bucket), f"{prefix}/_delta_log"

    def names_from(self, version: int) -> list[str]:
        return [item.name for item in self._reads.listed(self._folder, f"{version:020}")]

    def head(self, name: str) -> bytes | None:
        return self._reads.head(f"{self._folder}/{name}", _HEAD_BYTES)


class _LocalLog:
    def __init__(self, path: str) -> None:
        self._folder = Path(path) / "_delta_log"

    def names_from(self, version: int) -> list[str]:
        return list(self._from(version))

    def _from(self, version: int) -> Iterator[str]:
        """Asked for by name: a long log's folder takes longer to list."""
        while (self._folder / f"{version:020}.json").exists():
            yield f"{version:020}.json"
            if (self._folder / f"{version:020}.crc").exists():
                yield f"{version:020}.crc"
            version += 1

    def head(self, name: str) -> bytes | None:
        with (self._folder / name).open("rb") as file:
            return file.read(_HEAD_BYTES)
