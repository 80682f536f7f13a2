"""Make the tables what the spec declares: create them, add columns, refuse contradictions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812  (PySpark's own convention)

from ingest_platform.errors import SpecError
from ingest_platform.spec import StreamSpec
from ingest_platform.spec.fields import PartitionColumn
from ingest_platform.stream.schema import RESCUED

COORDINATE_FIELDS: Final = (
    T.StructField("_kafka_topic", T.StringType()),
    T.StructField("_kafka_partition", T.IntegerType()),
    T.StructField("_kafka_offset", T.LongType()),
    T.StructField("_kafka_timestamp", T.TimestampType()),
)

QUARANTINE_SCHEMA: Final = T.StructType(
    [
        *COORDINATE_FIELDS,
        T.StructField("key", T.BinaryType()),
        T.StructField("value", T.BinaryType()),
        T.StructField("reason", T.StringType()),
        T.StructField("detail", T.StringType()),
        T.StructField("batch", T.LongType()),
        T.StructField("session", T.StringType()),
        T.StructField("quarantined_at", T.TimestampType()),
    ]
)

# The driver writes the log's checkpoints itself, outside of the batches (`log_checkpoint`); the
# interval is only for a table that some other writer feeds for very long.
# Retention: time travel and slow readers get a week; the log is kept for a month of audits, and
# must never be shorter than file retention, or VACUUM LITE and time travel break.
PROPERTIES: Final = {
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.checkpointInterval": "10000",
}


def table_schema(spec: StreamSpec, data: T.StructType) -> T.StructType:
    """Columns of the table: data, rescued fields, coordinates, generated partition columns."""
    fields = list(data.fields)
    if spec.decode.unexpected_fields == "rescue":
        fields.append(T.StructField(RESCUED, T.StringType()))
    if spec.table.coordinates:
        fields += COORDINATE_FIELDS
    return T.StructType(fields)


def ensure_tables(spark: SparkSession, spec: StreamSpec, columns: T.StructType) -> T.StructType:
    """Create what is missing and return the table's columns, generated ones left out.

    Columns of the spec that an existing table lacks are added; nothing is ever dropped or changed.

    Raises:
        SpecError: An existing table contradicts the spec, or a partition column does not exist.
    """
    _check_partitions(spec, columns)
    _create(
        spark, spec.table.path, columns, spec.table.partitions, PROPERTIES | spec.table.properties
    )
    _create(spark, spec.table.quarantine, QUARANTINE_SCHEMA, (), PROPERTIES)
    existing = spark.read.format("delta").load(spec.table.path).schema
    missing = _missing(spec, columns, existing)
    if missing:
        add_columns(spark, spec.table.path, missing)
    generated = {p.name for p in spec.table.partitions if p.expression}
    known = set(columns.names)
    extra = [f for f in existing.fields if f.name not in known | generated]
    return T.StructType([*columns.fields, *extra])


def add_columns(spark: SparkSession, path: str, fields: Iterable[T.StructField]) -> None:
    """Add nullable columns at the end of the table, in a commit of its own."""
    ddl = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in fields)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({ddl})")


def _create(
    spark: SparkSession,
    path: str,
    columns: T.StructType,
    partitions: tuple[PartitionColumn, ...],
    properties: dict[str, str],
) -> None:
    if DeltaTable.isDeltaTable(spark, path):
        return
    builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(columns)
    for partition in partitions:
        if partition.expression and partition.type:
            builder = builder.addColumn(
                partition.name, partition.type, generatedAlwaysAs=partition.expression
            )
    if partitions:
        builder = builder.partitionedBy(*[p.name for p in partitions])
    for key, value in properties.items():
        builder = builder.property(key, value)
    builder.execute()


def _check_partitions(spec: StreamSpec, columns: T.StructType) -> None:
    for partition in spec.table.partitions:
        if partition.source not in columns.names:
            raise SpecError(
                f"partition column {partition.source!r} is not a column of the table",
                where=f"table.partition_by of {spec.name}",
                remedy=f"use one of: {', '.join(columns.names)}",
            )


def _missing(
    spec: StreamSpec, columns: T.StructType, existing: T.StructType
) -> list[T.StructField]:
    have = {f.name: f.dataType for f in existing.fields}
    for field in columns.fields:
        if field.name in have and have[field.name] != field.dataType:
            raise SpecError(
                f"column {field.name} is {have[field.name].simpleString()} in the table, but "
                f"{field.dataType.simpleString()} in the spec",
                where=f"decode.schema of {spec.name} against {spec.table.path}",
                remedy="declare the type that the table has, or write to a new table",
            )
    return [f for f in columns.fields if f.name not in have]
