"""A Delta table with many expired files, made in seconds: its files and its log by hand.

Data files are written below the folder that the S3 server serves, since 11,000 uploads would take
longer than what is measured, and could not be old. The log is what a writer would have left that
put the files of each partition together eight days ago.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_DAY: Final = 86_400
_WRITTEN: Final = 9 * _DAY  # ago, in seconds
_REMOVED: Final = 8 * _DAY
_BYTES: Final = 512
_SCHEMA: Final = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
    ],
}


@dataclass(frozen=True)
class ExpiredTable:
    """A table below a folder.

    Attributes:
        root: The table's folder.
        partitions: Number of partitions; each has one live file.
        expired: Number of files, spread over the partitions, that were removed eight days ago.
        put: Uploads an object of the log, by its path in the table: those are read, and readers
            want the checksums that the server keeps beside what it was sent.
    """

    root: Path
    partitions: int
    expired: int
    put: Callable[[str, bytes], None]

    def make(self) -> None:
        """Write files and log."""
        now = time.time()
        removed = [self._path(n % self.partitions, f"old-{n:06}") for n in range(self.expired)]
        live = [self._path(n, f"live-{n:06}") for n in range(self.partitions)]
        for path in (*removed, *live):
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"x" * _BYTES)
            os.utime(file, times=(now - _WRITTEN, now - _WRITTEN))
        self._commit(0, now - _WRITTEN, [*_birth(now), *(self._add(p, now) for p in removed)])
        compacted = [self._remove(p, now) for p in removed] + [self._add(p, now) for p in live]
        self._commit(1, now - _REMOVED, compacted)

    def files(self) -> list[str]:
        """Names of the data files that are there."""
        return sorted(path.name for path in self.root.rglob("*.parquet"))

    @staticmethod
    def _path(partition: int, name: str) -> str:
        return f"p={partition:05}/part-{name}.parquet"

    @staticmethod
    def _add(path: str, now: float) -> dict[str, Any]:
        return {"add": {**_file(path), "modificationTime": _ms(now - _WRITTEN), "dataChange": True}}

    @staticmethod
    def _remove(path: str, now: float) -> dict[str, Any]:
        at = _ms(now - _REMOVED)
        more = {"deletionTimestamp": at, "dataChange": False, "extendedFileMetadata": True}
        return {"remove": {**_file(path), **more}}

    def _commit(self, version: int, at: float, actions: list[dict[str, Any]]) -> None:
        info = {"timestamp": _ms(at), "operation": "WRITE", "operationParameters": {}}
        lines = [json.dumps(action) for action in ({"commitInfo": info}, *actions)]
        self.put(f"_delta_log/{version:020}.json", ("\n".join(lines) + "\n").encode())


def _birth(now: float) -> Iterator[dict[str, Any]]:
    yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    yield {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(_SCHEMA),
            "partitionColumns": ["p"],
            "configuration": {},
            "createdTime": _ms(now - _WRITTEN),
        }
    }


def _file(path: str) -> dict[str, Any]:
    return {"path": path, "partitionValues": {"p": path[2:7]}, "size": _BYTES}


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
