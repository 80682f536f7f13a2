"""The Delta log of a stream's table after a long life, made in seconds: commits, and no data.

Each commit is what a batch of the platform leaves: `commitInfo` with a ledger over all partitions,
the session's transaction, and a file with statistics. An audit reads nothing else of a table.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange, OffsetRanges

_BEGAN: Final = 1_760_000_000_000  # epoch ms of the first commit; one every 15 s
_EVERY: Final = 15_000
_BYTES: Final = 5_000_000
_SESSION: Final = str(uuid.UUID(int=17))


@dataclass(frozen=True)
class LongLog:
    """A table's log.

    Attributes:
        folder: The table's `_delta_log`, which need not be there yet.
        commits: How many.
        partitions: Of the topic; each batch reads some records of each.
        per_partition: Records that a batch reads of each partition.
    """

    folder: Path
    commits: int
    partitions: int = 25
    per_partition: int = 2_400

    def make(self) -> None:
        """Write all commits, with the checksum that an S3 server keeps beside what it was sent."""
        self.folder.mkdir(parents=True)
        for version in range(self.commits):
            lines = (f"{json.dumps(action)}\n" for action in self._actions(version))
            self._put(f"{version:020}.json", "".join(lines))

    def add_checksum(self) -> None:
        """The newest version's, as far as a reader of the table's size cares."""
        newest, files = self.commits - 1, self.commits
        histogram = {"sortedBinBoundaries": [0, 32 << 20], "fileCounts": [files, 0]}
        checksum = {
            "tableSizeBytes": files * _BYTES,
            "numFiles": files,
            "fileSizeHistogram": histogram,
            "allFiles": [self._file(version, _BEGAN, 0) for version in range(files)],
        }
        self._put(f"{newest:020}.crc", json.dumps(checksum, separators=(",", ":")))

    def _put(self, name: str, text: str) -> None:
        data, path = text.encode(), self.folder / name
        path.write_bytes(data)
        os.setxattr(path, "user.content-md5", hashlib.md5(data).digest())

    def records(self) -> int:
        """What the ledgers add up to."""
        return self.commits * self.partitions * self.per_partition

    def _actions(self, version: int) -> Iterator[dict[str, Any]]:
        time = _BEGAN + version * _EVERY
        ledger = self._ledger(version)
        yield {
            "commitInfo": {
                "timestamp": time,
                "userMetadata": ledger.to_user_metadata(),
                "operation": "WRITE",
                "operationParameters": {"mode": "Append", "partitionBy": '["hour"]'},
                "readVersion": version - 1,
                "isolationLevel": "Serializable",
                "isBlindAppend": True,
                "operationMetrics": {"numFiles": "1", "numOutputRows": str(ledger.written)},
                "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
                "txnId": str(uuid.UUID(int=version)),
            }
        }
        if not version:
            yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
            yield {"metaData": _metadata()}
        yield {"txn": {"appId": _SESSION, "version": version, "lastUpdated": time}}
        yield {"add": self._file(version, time, ledger.written)}

    def _ledger(self, version: int) -> Ledger:
        start = version * self.per_partition
        ranges = (
            OffsetRange("clickstream", p, start, start + self.per_partition)
            for p in range(self.partitions)
        )
        width = self.partitions * self.per_partition
        lag = {f"clickstream-{p}": 120 for p in range(self.partitions)}
        when = "2026-01-31T00:00:00.000000+00:00"
        return Ledger(
            "clicks",
            _SESSION,
            version,
            OffsetRanges(tuple(ranges)),
            width,
            width,
            max_event_time=when,
            lag=lag,
        )

    @staticmethod
    def _file(version: int, time: int, rows: int) -> dict[str, Any]:
        names = [f"c{n}" for n in range(12)]
        stats = {
            "numRecords": rows,
            "minValues": dict.fromkeys(names, f"a{version}"),
            "maxValues": dict.fromkeys(names, f"z{version}"),
            "nullCount": dict.fromkeys(names, 0),
        }
        return {
            "path": f"hour=2026-01-31-00/part-00000-{uuid.UUID(int=version)}.c000.snappy.parquet",
            "partitionValues": {"hour": "2026-01-31-00"},
            "size": _BYTES,
            "modificationTime": time,
            "dataChange": True,
            "stats": json.dumps(stats),
        }


def _metadata() -> dict[str, Any]:
    fields = [{"name": "hour", "type": "string", "nullable": True, "metadata": {}}]
    return {
        "id": str(uuid.UUID(int=1)),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["hour"],
        "configuration": {},
        "createdTime": _BEGAN,
    }
