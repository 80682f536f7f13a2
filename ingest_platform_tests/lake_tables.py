"""Delta tables for tests of maintenance: made of many small files, compared by their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from ingest_platform.adapters.delta_tables import options_for
from ingest_platform.spec import StorageEnvironment, StreamSpec
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.factories import make_spec


def storage_of(s3: S3Bucket | None) -> StorageEnvironment:
    """How to reach the bucket, or nothing for local paths."""
    return StorageEnvironment.from_env(s3.environment() if s3 else {})


def table_spec(path: str, **maintenance: Any) -> StreamSpec:
    """A stream whose table is at `path`; settled at once, so that tests need not wait."""
    compaction = {"settle": "0s", "min_files": 1, **maintenance.pop("compaction", {})}
    return make_spec(table={"path": path}, maintenance={"compaction": compaction, **maintenance})


class LakeTable:
    """A table as another engine sees it: delta-rs, which shares no code with Spark's writer."""

    def __init__(self, path: str, s3: S3Bucket | None = None) -> None:
        self.path = path
        self.storage = storage_of(s3)
        self._options = options_for(path, self.storage)

    def append(self, ids: Sequence[int], **columns: Sequence[Any]) -> None:
        """Add one file for each partition value."""
        data = pa.table({"id": pa.array(ids, pa.int64()), **columns})
        write_deltalake(
            self.path,
            data,
            mode="append",
            partition_by=list(columns) or None,
            storage_options=self._options,
        )

    def delta(self) -> DeltaTable:
        """The newest version."""
        return DeltaTable(self.path, storage_options=self._options)

    def rows(self) -> list[dict[str, Any]]:
        """All rows, by id."""
        return sorted(self.delta().to_pyarrow_table().to_pylist(), key=lambda row: row["id"])

    def files(self) -> int:
        """Number of live files."""
        return len(pa.table(self.delta().get_add_actions()))

    def history(self) -> list[Mapping[str, Any]]:
        """Commits, oldest first."""
        return list(reversed(self.delta().history()))

    def operations(self) -> list[str]:
        """What the commits did, oldest first."""
        return [str(commit["operation"]) for commit in self.history()]
