"""What a Delta table's log says, read by delta-rs: no JVM, cheap enough for every sensor tick."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from ingest_platform.adapters.delta_tables import errors_of, open_table
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.commit import Commit
from ingest_platform.model.ledger import Ledger
from ingest_platform.spec.environment import StorageEnvironment

SMALL_BYTES = 32 * 1024 * 1024
_STRIDES = (50, 250, 1000)  # commits read at once, until they go back far enough


@dataclass(frozen=True)
class TableSize:
    """The files that make up a table at `version`; `bytes` is their sum, `small` those below 32 MB.

    Reading a smaller file costs more in requests than in bytes.
    """

    version: int
    files: int
    bytes: int
    small: int


class TableLog:
    """The log of one table; keeps its last snapshot and reads only what was added since."""

    def __init__(self, path: str, storage: StorageEnvironment) -> None:
        self._path, self._storage = path, storage
        self._table: DeltaTable | None = None
        self._lock = threading.Lock()  # sensors of one code server share the instance

    def version(self) -> int | None:
        """The newest version; None when there is no table yet.

        Raises:
            StorageUnavailableError, StorageDeniedError: The log cannot be read.
        """
        table = self._refreshed()
        return None if table is None else table.version()

    def commits(self, after: int, limit: int = 1000, *, fresh: bool = True) -> list[Commit]:
        """Commits of the versions above `after`, oldest first; only the newest `limit` of them.

        With `fresh=False`, as of the last look, which costs no look for newer commits.
        """
        table = self._refreshed() if fresh else self._known()
        if table is None or table.version() <= after:
            return []
        with self._lock, errors_of(self._path):
            history = table.history(min(limit, table.version() - after))
        commits = (_commit(entry) for entry in history)
        return sorted((c for c in commits if c.version > after), key=lambda c: c.version)

    def commits_around(self, moment_ms: int) -> list[Commit]:
        """The newest commits, back to one from before a moment (ms since the epoch), oldest first.

        As of the last look, and at most 1,000. No more are parsed than it takes, which is slow.
        """
        commits: list[Commit] = []
        for limit in _STRIDES:
            commits = self.commits(-1, limit, fresh=False)
            if len(commits) < limit or commits[0].timestamp_ms < moment_ms:
                break
        return commits

    def size(self, *, fresh: bool = True) -> TableSize | None:
        """Number and bytes of the table's files; None when there is no table yet.

        `fresh` as in `commits`.
        """
        table = self._refreshed() if fresh else self._known()
        if table is None:
            return None
        with self._lock, errors_of(self._path):
            # Without PyArrow, whose import costs `status` more than the whole look.
            sizes = table.get_add_actions().column("size_bytes").to_pylist()
            small = sum(size < SMALL_BYTES for size in sizes)
            return TableSize(table.version(), len(sizes), sum(sizes), small)

    def forget(self) -> None:
        """Open the log afresh next time: for a caller who learns that the table was made anew.

        An incremental update only looks for commits above the last one known, so it cannot notice.
        """
        with self._lock:
            self._table = None

    def _known(self) -> DeltaTable | None:
        return self._table if self._table is not None else self._refreshed()

    def _refreshed(self) -> DeltaTable | None:
        with self._lock, errors_of(self._path):
            if self._table is not None:
                try:
                    self._table.update_incremental()
                except (DeltaError, OSError):
                    self._table = None  # e.g. its log was cleaned up meanwhile: open it afresh
                else:
                    return self._table
            self._table = open_table(self._path, self._storage)
            return self._table


@lru_cache(maxsize=256)
def table_log(path: str, storage: StorageEnvironment) -> TableLog:
    """The log of the table at `path`, one per process and path, so that ticks stay incremental."""
    return TableLog(path, storage)


def _commit(entry: Mapping[str, Any]) -> Commit:
    metrics = entry.get("operationMetrics") or {}
    ledger, repair = None, None
    with suppress(ValueError):  # which `ingest-platform audit` reports
        ledger = Ledger.from_user_metadata(entry.get("userMetadata"))
        repair = RepairRecord.from_user_metadata(entry.get("userMetadata"))
    return Commit(
        version=int(entry["version"]),
        timestamp_ms=int(entry.get("timestamp") or 0),
        operation=str(entry.get("operation") or ""),
        metrics={name: int(v) for name, v in metrics.items() if str(v).isdigit()},
        ledger=ledger,
        restored_to=_restored_to(entry),
        repair=repair,
    )


def _restored_to(entry: Mapping[str, Any]) -> int | None:
    if entry.get("operation") != "RESTORE":
        return None
    version = str((entry.get("operationParameters") or {}).get("version"))
    return int(version) if version.isdecimal() else -1
