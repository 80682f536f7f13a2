"""Kafka record to columns, and why a record was rejected.

A decoded row holds the data columns, the record's coordinates and the reason why it is no row of
the table, if it is none. The raw bytes are left behind: only the rare batch with rejected records
reads them, in a second pass (`quarantine`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql import types as T  # noqa: N812

from ingest_platform.spec import DecodeSpec
from ingest_platform.stream.unexpected import unexpected_fields

REASON: Final = "_reason"
UNEXPECTED: Final = "_unexpected"

TOMBSTONE: Final = "tombstone"
EMPTY_VALUE: Final = "empty_value"
NOT_UTF8: Final = "not_utf8"
UNDECODABLE: Final = "undecodable"
UNEXPECTED_FIELDS: Final = "unexpected_fields"

COORDINATES: Final = {
    "_kafka_topic": "topic",
    "_kafka_partition": "partition",
    "_kafka_offset": "offset",
    "_kafka_timestamp": "timestamp",
}

RAW: Final = {"_raw_key": "key", "_raw_value": "value"}

# What a field may be called to become a column: no escaping needed in any reader.
COLUMN_NAME: Final = "^[A-Za-z][A-Za-z0-9_]*$"

_JSON_OBJECT: Final = "ingest.json_object"  # spark/functions
_VALUE: Final = "_value"
_ROW: Final = "_row"
_CALENDAR: Final = ("TIMESTAMP '0001-01-01T00:00:00Z'", "TIMESTAMP '9999-12-31T23:59:59.999999Z'")


class Decoder:
    """Decodes the value of each Kafka record, keeping every record. Made once for many frames."""

    def __init__(
        self,
        schema: T.StructType,
        spec: DecodeSpec,
        reserved: Collection[str] = (),
        *,
        raw: bool = False,
    ) -> None:
        """Make its columns.

        Args:
            schema: The data columns.
            spec: Policies.
            reserved: Further columns of the table that no unexpected field may fill.
            raw: Keep the record's bytes, as `_raw_key` and `_raw_value`.
        """
        value, timestamps = F.col("value"), F.lit(spec.timestamp_format).cast("string")
        # Whatever the table demands, a record can leave any field out.
        found = T.StructType([T.StructField(f.name, f.dataType) for f in schema.fields])
        row = F.call_function(_JSON_OBJECT, value, F.lit(None).cast(found), timestamps)
        kept = {**COORDINATES, **(RAW if raw else {})}
        self._parsed = [F.col(source).alias(name) for name, source in kept.items()]
        self._parsed += [value.alias(_VALUE), row.alias(_ROW)]
        rest = [*RAW] if raw else []
        if spec.unexpected_fields != "ignore":
            unexpected = unexpected_fields(value.cast("string"), schema)
            self._parsed.append(unexpected.alias(UNEXPECTED))
            rest.insert(0, UNEXPECTED)
        self._decoded = [
            *[F.col(name) for name in COORDINATES],
            *[F.col(_ROW)[name].alias(name) for name in schema.names],
            *[F.col(name) for name in rest],
            _reason(schema, spec, reserved).alias(REASON),
        ]

    def rows(self, records: DataFrame) -> DataFrame:
        """Decode.

        Args:
            records: Spark's Kafka source: key, value, topic, partition, offset, timestamp, ...

        Returns:
            `_kafka_*`, the data columns, `_reason` (null for a good record) and, unless unexpected
            fields are ignored, `_unexpected` (a map from name to JSON text; may be null).
        """
        return records.select(*self._parsed).select(*self._decoded)


def beyond_calendar(time: Column, kind: T.DataType) -> Column:
    """Whether a time lies outside of the years 1 to 9999; false for what is no time.

    Milliseconds where JSON means seconds give the year 58054: a value that Spark stores, and that
    Python and Arrow readers of the table then fail on.
    """
    if not isinstance(kind, T.TimestampType | T.TimestampNTZType | T.DateType):
        return F.lit(False)
    first, last = (F.expr(text) for text in _CALENDAR)
    return F.coalesce((time < first) | (time > last), F.lit(False))


def _reason(schema: T.StructType, spec: DecodeSpec, reserved: Collection[str]) -> Column:
    value, row = F.col(_VALUE), F.col(_ROW)
    why = (
        F.when(value.isNull(), TOMBSTONE)
        .when(F.octet_length(value) == 0, EMPTY_VALUE)
        .when(row.isNull() & ~F.is_valid_utf8(value.cast("string")), NOT_UTF8)
        .when(row.isNull(), UNDECODABLE)
    )
    for field in schema.fields:
        column = row[field.name]
        why = why.when(beyond_calendar(column, field.dataType), UNDECODABLE)
        if not field.nullable:  # the table would refuse the whole batch
            why = why.when(column.isNull(), UNDECODABLE)
    if spec.unexpected_fields == "fail":
        return why.when(F.size(UNEXPECTED) > 0, UNEXPECTED_FIELDS)
    if spec.unexpected_fields == "add_columns":
        # A field that can be no column must not vanish: its record goes to quarantine. To Spark,
        # names that differ in case only are one column.
        names = F.map_keys(UNEXPECTED)
        columns = F.transform(names, F.lower)
        taken = F.array(*[F.lit(name.lower()) for name in (*schema.names, *reserved)])
        unfit = F.exists(names, lambda name: ~name.rlike(COLUMN_NAME))
        twice = F.size(F.array_distinct(columns)) < F.size(columns)
        return why.when(unfit | twice | F.arrays_overlap(columns, taken), UNEXPECTED_FIELDS)
    return why
