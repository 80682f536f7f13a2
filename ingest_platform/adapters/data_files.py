"""The live files of a Delta table, from its log by delta-rs: no JVM, no listing of storage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from ingest_platform.adapters.delta_tables import errors_of, open_table
from ingest_platform.model.data_file import DataFile, Partition
from ingest_platform.spec.environment import StorageEnvironment


@dataclass(frozen=True)
class LiveFiles:
    """A table at one version.

    Attributes:
        version: Of the table.
        files: All data files of that version.
        partition_types: Type by partition column, in Spark's SQL.
        properties: The table's properties.
    """

    version: int
    files: tuple[DataFile, ...]
    partition_types: Mapping[str, str]
    properties: Mapping[str, str]

    @property
    def bytes(self) -> int:
        """Sum of the files' sizes."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True)
class TableFacts:
    """What the table's metadata says.

    Attributes:
        properties: The table's properties.
        created: When it was made; None where the log does not say.
    """

    properties: Mapping[str, str]
    created: datetime | None


def live_files(path: str, storage: StorageEnvironment) -> LiveFiles | None:
    """Read the newest version; None when there is no table yet.

    Raises:
        LogDamagedError: An entry of the log is missing.
        StorageUnavailableError, StorageDeniedError: The log cannot be read.
    """
    with errors_of(path):
        table = open_table(path, storage)
        if table is None:
            return None
        actions = pa.table(table.get_add_actions(flatten=True))
        columns, properties = table.metadata().partition_columns, table.metadata().configuration
        types = {field.name: field.type for field in table.schema().fields}
    return LiveFiles(
        version=table.version(),
        files=_files(actions, columns),
        partition_types={column: _sql_type(types[column]) for column in columns},
        properties=properties,
    )


def table_facts(path: str, storage: StorageEnvironment) -> TableFacts | None:
    """Read the newest version's metadata; None when there is no table yet.

    Raises:
        IngestError: As `live_files`.
    """
    with errors_of(path):
        table = open_table(path, storage)
        if table is None:
            return None
        found = table.metadata()
    at = found.created_time
    created = datetime.fromtimestamp(at / 1000, UTC) if at else None
    return TableFacts(found.configuration, created)


def _files(actions: pa.Table, columns: list[str]) -> tuple[DataFile, ...]:
    sizes = actions.column("size_bytes").to_pylist()
    modified = actions.column("modification_time").to_pylist()
    values = [map(_serialized, actions.column(f"partition.{c}").to_pylist()) for c in columns]
    # Few partitions, many files: those of one partition share one tuple.
    known: dict[Partition, Partition] = {}
    partitions: Any = zip(*values, strict=True) if columns else ((),) * len(sizes)
    return tuple(
        DataFile(known.setdefault(partition, partition), size, at)
        for partition, size, at in zip(
            (tuple(zip(columns, row, strict=True)) for row in partitions),
            sizes,
            modified,
            strict=True,
        )
    )


def _serialized(value: Any) -> str | None:
    """A partition value as text that `CAST` turns back into it (see the Delta protocol)."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case date():
            return value.isoformat()
        case bytes():
            return value.decode()
        case _:
            return str(value)


def _sql_type(type_: Any) -> str:
    """Spark's name of a primitive type; only those can partition a table."""
    name = str(json.loads(type_.to_json()))
    return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(
        name, name
    )
