"""Make the tables what the spec declares: create them, add columns, refuse contradictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException, IllegalArgumentException
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

# The platform's drivers write the log's checkpoints (`spark/log_checkpoint`), not the batches; the
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


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table.

    Attributes:
        written: Those that batches write: the declared ones, and text columns that the table has
            beside them, which unexpected fields may fill.
        reserved: Names of the others, such as generated partition columns.
    """

    written: T.StructType
    reserved: frozenset[str]


def ensure_tables(spark: SparkSession, spec: StreamSpec, columns: T.StructType) -> TableColumns:
    """Create what is missing.

    Columns of the spec that an existing table lacks are added; nothing is ever dropped or changed.

    Raises:
        SpecError: An existing table contradicts the spec, or a partition column does not exist.
    """
    _check_columns(spec, columns)
    properties = PROPERTIES | spec.table.properties
    try:
        _create(
            spark,
            spec.table.path,
            columns,
            properties,
            partitions=spec.table.partitions,
            cluster_by=spec.table.cluster_by,
        )
    except (AnalysisException, IllegalArgumentException) as error:
        raise SpecError(
            f"Delta refuses such a table: {str(error).strip().splitlines()[0]}",
            where=f"decode and table of {spec.name}",
            remedy="mend the columns, table.partition_by, table.cluster_by or table.properties; "
            "nothing was made",
        ) from error
    _create(spark, spec.table.quarantine, QUARANTINE_SCHEMA, PROPERTIES)
    existing = spark.read.format("delta").load(spec.table.path).schema
    missing = _missing(spec, columns, existing)
    if missing:
        add_columns(spark, spec.table.path, missing)
    generated = {p.name for p in spec.table.partitions if p.expression}
    beside = [f for f in existing.fields if f.name not in columns.names]
    text = [f for f in beside if f.dataType == T.StringType() and f.name not in generated]
    return TableColumns(
        written=T.StructType([*columns.fields, *text]),
        reserved=frozenset(f.name for f in beside if f not in text),
    )


def refuse_other_types(rows: T.StructType, table: T.StructType) -> None:
    """Compare what a transform returned with the table.

    Delta would write the files as they are and commit them; readers fail on them later.

    Raises:
        SpecError: A column has another type than in the table.
    """
    types = {f.name: f.dataType.simpleString() for f in table.fields}
    for field in rows.fields:
        found = field.dataType.simpleString()
        if types.get(field.name, found) != found:
            raise SpecError(
                f"column {field.name} is {found} after the transform, but {types[field.name]} in "
                "the table",
                where="transform",
                remedy="cast it there to the type that the table has",
            )


def add_columns(spark: SparkSession, path: str, fields: Iterable[T.StructField]) -> None:
    """Add nullable columns at the end of the table, in a commit of its own."""
    ddl = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in fields)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({ddl})")


def _create(
    spark: SparkSession,
    path: str,
    columns: T.StructType,
    properties: dict[str, str],
    *,
    partitions: tuple[PartitionColumn, ...] = (),
    cluster_by: tuple[str, ...] = (),
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
    if cluster_by:
        builder = builder.clusterBy(*cluster_by)
    for key, value in properties.items():
        builder = builder.property(key, value)
    builder.execute()


def _check_columns(spec: StreamSpec, columns: T.StructType) -> None:
    time = spec.table.event_time
    if time is not None and not any(
        f.name == time and f.dataType == T.TimestampType() for f in columns.fields
    ):
        raise SpecError(
            f"event time {time!r} is not a TIMESTAMP column of the table",
            where=f"table.event_time of {spec.name}",
            remedy=f"use one of: {', '.join(columns.names)}; or leave it out: Kafka's time counts",
        )
    for option, names in (
        ("partition_by", [partition.source for partition in spec.table.partitions]),
        ("cluster_by", spec.table.cluster_by),
    ):
        for name in names:
            if name not in columns.names:
                raise SpecError(
                    f"{name!r} is not a column of the table",
                    where=f"table.{option} of {spec.name}",
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
