"""How many files a table has, and how many are small: delta-rs, no JVM."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from ingest_platform.errors import StorageUnavailableError
from ingest_platform.spec.environment import StorageEnvironment

SMALL_BYTES = 32 * 1024 * 1024  # reading a smaller file costs more in requests than in bytes
_HISTORY = 2_000


@dataclass(frozen=True)
class TableFiles:
    """The files that make up a table at `version`.

    Attributes:
        version: Of the table.
        files: Number of them.
        bytes: Their sum.
        small: Those below `SMALL_BYTES`.
    """

    version: int
    files: int
    bytes: int
    small: int


@dataclass(frozen=True)
class Housekeeping:
    """When a table was last maintained, as far as its last commits tell; ISO 8601 UTC."""

    compacted_at: str | None = None
    vacuumed_at: str | None = None

    def or_later(self, other: Housekeeping) -> Housekeeping:
        """The later of each."""
        compacted = max(self.compacted_at or "", other.compacted_at or "") or None
        return Housekeeping(compacted, max(self.vacuumed_at or "", other.vacuumed_at or "") or None)


class TableFilesReader:
    """Reads one table; asked again, it reads only what was added to the log since."""

    def __init__(self, path: str, storage: StorageEnvironment) -> None:
        self._path = path
        self._storage = storage
        self._table: deltalake.DeltaTable | None = None

    def read(self) -> TableFiles | None:
        """The files now; None when there is no table yet.

        Raises:
            StorageUnavailableError: The log cannot be read.
        """
        table = self._refreshed()
        if table is None:
            return None
        sizes = [int(size) for size in table.get_add_actions().column("size_bytes").to_pylist()]
        small = sum(size < SMALL_BYTES for size in sizes)
        return TableFiles(table.version(), len(sizes), sum(sizes), small)

    def housekeeping(self) -> Housekeeping:
        """The last compaction and vacuum among the last 2,000 commits, by whomever."""
        table = self._refreshed()
        if table is None:
            return Housekeeping()
        history = table.history(_HISTORY)
        return Housekeeping(_last(history, {"OPTIMIZE"}), _last(history, {"VACUUM END"}))

    def _refreshed(self) -> deltalake.DeltaTable | None:
        try:
            if self._table is None:
                self._table = deltalake.DeltaTable(self._path, storage_options=self._options())
            else:
                self._table.update_incremental()
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            self._table = None
            text = " ".join(str(error).split())[:300]
            raise StorageUnavailableError(
                f"the table's log cannot be read: {text}",
                where=self._path,
                remedy="check the storage, its endpoint and the credentials",
            ) from error
        return self._table

    def _options(self) -> dict[str, str] | None:
        if not self._path.startswith("s3a://"):
            return None
        # Brings in Arrow: 0.3 s that a status of local tables need not wait for.
        from ingest_platform.adapters.table_log import storage_options  # noqa: PLC0415

        return storage_options(self._storage)


def _last(history: list[dict[str, Any]], operations: set[str]) -> str | None:
    for commit in history:  # newest first
        if commit.get("operation") in operations and commit.get("timestamp"):
            time = datetime.fromtimestamp(commit["timestamp"] / 1000, UTC)
            return time.isoformat(timespec="seconds")
    return None
