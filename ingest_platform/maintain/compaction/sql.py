"""The statement that carries out one batch of a compaction plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingest_platform.maintain.compaction.plan import Batch
from ingest_platform.model.data_file import Partition


def optimize_statement(
    path: str, batch: Batch, types: Mapping[str, str], z_order: Sequence[str] = ()
) -> str:
    """`OPTIMIZE` for the batch's partitions only.

    Args:
        path: Of the table; specs admit no backticks in it.
        batch: Partitions to compact.
        types: SQL type by partition column.
        z_order: Columns to cluster by; empty for bin packing.
    """
    statement = f"OPTIMIZE delta.`{path}`"
    if any(batch.partitions):
        alternatives = " OR ".join(f"({_condition(p, types)})" for p in batch.partitions)
        statement += f" WHERE {alternatives}"
    if z_order:
        statement += f" ZORDER BY ({', '.join(map(_column, z_order))})"
    return statement


def _condition(partition: Partition, types: Mapping[str, str]) -> str:
    return " AND ".join(_equals(column, value, types[column]) for column, value in partition)


def _equals(column: str, value: str | None, type_: str) -> str:
    if value is None:
        return f"{_column(column)} IS NULL"
    # Delta itself casts the log's text in this way, so both mean the same partition.
    return f"{_column(column)} = CAST({_literal(value)} AS {type_})"


def _column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
