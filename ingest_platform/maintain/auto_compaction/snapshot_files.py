"""The files of a table's newest snapshot, by size and partition: delta-rs, no Spark job."""

from __future__ import annotations

import threading

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from ingest_platform.adapters.delta_tables import options_for
from ingest_platform.maintain.auto_compaction.trigger import PARTITION_PREFIX
from ingest_platform.spec import StorageEnvironment


class SnapshotFiles:
    """Reads tables; asked again, it reads only what was added to the log since."""

    def __init__(self, storage: StorageEnvironment) -> None:
        self._storage = storage
        self._tables: dict[str, DeltaTable] = {}
        self._lock = threading.Lock()

    def read(self, table: str) -> pa.Table:
        """One row per file: `size_bytes`, and `partition.NAME` for each partition column.

        Raises:
            DeltaError, OSError: The log cannot be read; the next call begins afresh.
        """
        snapshot = self._refreshed(table)
        files = pa.table(snapshot.get_add_actions(flatten=True))
        wanted = [
            n for n in files.column_names if n == "size_bytes" or n.startswith(PARTITION_PREFIX)
        ]
        return files.select(wanted)

    def _refreshed(self, table: str) -> DeltaTable:
        # Two workers never have the same table; the lock is for the dictionary alone.
        with self._lock:
            known = self._tables.pop(table, None)
        if known is not None:
            try:
                known.update_incremental()
            except (DeltaError, OSError):
                known = None  # e.g. its log was cleaned up meanwhile
        snapshot = known or self._opened(table)
        with self._lock:
            self._tables[table] = snapshot
        return snapshot

    def _opened(self, table: str) -> DeltaTable:
        return DeltaTable(table, storage_options=options_for(table, self._storage))
