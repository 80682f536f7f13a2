"""Kafka record to columns, and why a record was rejected.

A decoded row holds the data columns, the record's coordinates and the reason why it is no row of
the table, if it is none. The raw bytes are left behind: only the rare batch with rejected records
reads them, in a second pass (`quarantine`).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql import types as T  # noqa: N812

from ingest_platform.spec import DecodeSpec

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

# What a field may be called to become a column: no escaping needed in any reader.
COLUMN_NAME: Final = "^[A-Za-z][A-Za-z0-9_]*$"

_CORRUPT: Final = "_corrupt"
_DOCUMENT: Final = "document"
_END: Final = "end"
_ROW: Final = "_row"
_TEXT_MAP: Final = "map<string,string>"


def decode(records: DataFrame, schema: T.StructType, spec: DecodeSpec) -> DataFrame:
    """Decode the value of each Kafka record, keeping every record.

    Args:
        records: Spark's Kafka source: key, value, topic, partition, offset, timestamp, ...
        schema: The data columns.
        spec: Policies.

    Returns:
        `_kafka_*`, the data columns, `_reason` (null for a good record) and, unless unexpected
        fields are ignored, `_unexpected` (a map from name to JSON text; may be null).
    """
    text = F.col("value").cast("string")
    envelope = T.StructType(
        [
            T.StructField(_DOCUMENT, schema),
            T.StructField(_END, T.IntegerType()),
            T.StructField(_CORRUPT, T.StringType()),
        ]
    )
    # `from_json` stops after the first value and drops what follows without a word. Inside an
    # envelope whose last field must be reached, anything but exactly one value breaks it.
    enveloped = F.concat(F.lit(f'{{"{_DOCUMENT}":'), text, F.lit(f',"{_END}":1}}'))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if spec.timestamp_format:
        options["timestampFormat"] = spec.timestamp_format
    columns = [F.col(source).alias(name) for name, source in COORDINATES.items()]
    columns += [F.from_json(enveloped, envelope, options).alias(_ROW), _value_state(text)]
    if spec.unexpected_fields != "ignore":
        columns.append(_unexpected(text, schema).alias(UNEXPECTED))
    parsed = records.select(*columns)
    rest = [UNEXPECTED] if spec.unexpected_fields != "ignore" else []
    return parsed.select(
        *COORDINATES,
        *[F.col(f"{_ROW}.{_DOCUMENT}.`{name}`").alias(name) for name in schema.names],
        *rest,
        _reason(schema, spec).alias(REASON),
    )


def _value_state(text: Column) -> Column:
    # Jackson replaces malformed UTF-8 with U+FFFD without a word, so it is looked for first.
    return (
        F.when(text.isNull(), TOMBSTONE)
        .when(F.length(text) == 0, EMPTY_VALUE)
        .when(~F.is_valid_utf8(text), NOT_UTF8)
        .alias("_value_state")
    )


def _reason(schema: T.StructType, spec: DecodeSpec) -> Column:
    row = F.col(_ROW)
    corrupt = row[_DOCUMENT].isNull() | row[_END].isNull() | row[_CORRUPT].isNotNull()
    why = F.when(F.col("_value_state").isNotNull(), F.col("_value_state")).when(
        corrupt, UNDECODABLE
    )
    if spec.unexpected_fields == "fail":
        return why.when(F.size(UNEXPECTED) > 0, UNEXPECTED_FIELDS)
    if spec.unexpected_fields == "add_columns":
        # A field that can be no column must not vanish: its record goes to quarantine.
        names = F.map_keys(UNEXPECTED)
        taken = F.array(*[F.lit(name.lower()) for name in schema.names])
        return why.when(
            F.exists(names, lambda n: ~n.rlike(COLUMN_NAME) | F.array_contains(taken, F.lower(n))),
            UNEXPECTED_FIELDS,
        )
    return why


def _unexpected(json_text: Column, schema: T.StructType, prefix: str = "") -> Column:
    """Fields that the schema does not name, also in nested objects (`address.zip`)."""
    fields = F.from_json(json_text, _TEXT_MAP)
    known = F.array(*[F.lit(name) for name in schema.names])
    unknown = F.map_filter(fields, lambda name, _: ~F.array_contains(known, name))
    if prefix:
        unknown = F.transform_keys(unknown, lambda name, _: F.concat(F.lit(prefix), name))
    nested = [
        _unexpected(fields[f.name], f.dataType, f"{prefix}{f.name}.")
        for f in schema.fields
        if isinstance(f.dataType, T.StructType)
    ]
    if not nested:
        return unknown
    empty = F.create_map().cast(_TEXT_MAP)
    return F.map_concat(*[F.coalesce(part, empty) for part in (unknown, *nested)])
