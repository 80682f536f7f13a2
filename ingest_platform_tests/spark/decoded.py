"""Values through the real decoder, as rows of the table or of the quarantine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from ingest_platform.spec import DecodeSpec
from ingest_platform.stream.decode import COORDINATES, REASON, UNEXPECTED, Decoder
from ingest_platform.stream.quarantine import Coordinate, Rejected
from ingest_platform.stream.schema import data_schema

_KAFKA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, timestampType INT"
)
_TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Decoded:
    """What became of one value.

    Attributes:
        row: Its data columns as JSON would show them, without nulls; None if it was rejected.
        unexpected: Fields that the schema does not name; None where the policy ignores them.
        reason: Why it was rejected.
        detail: What the quarantine says further.
        raw: The value's bytes in the quarantine; None if it is not there.
    """

    row: dict[str, Any] | None
    unexpected: dict[str, str | None] | None
    reason: str | None
    detail: str | None
    raw: bytes | None


def decode_values(
    spark: SparkSession, values: Sequence[bytes | None], **decode_spec: str
) -> list[Decoded]:
    """Decode each value as a record of its own, and reject what the decoder rejects."""
    spec = DecodeSpec.model_validate(decode_spec)
    schema = data_schema(spark, spec)
    rows = [(b"key", value, "t", 0, n, _TIME, 0) for n, value in enumerate(values)]
    records = spark.createDataFrame(rows, _KAFKA).coalesce(1).cache()
    good = _decoded(Decoder(schema, spec).rows(records), schema.names)
    bad = [Coordinate("t", 0, n) for n, row in enumerate(good) if row[REASON]]
    rejected = {
        row["_kafka_offset"]: row for row in Rejected(schema, spec).rows(records, bad).collect()
    }
    records.unpersist()
    return [_outcome(row, rejected.get(n)) for n, row in enumerate(good)]


def _decoded(decoded: DataFrame, names: list[str]) -> list[Row]:
    extra = [UNEXPECTED] if UNEXPECTED in decoded.columns else []
    # As text: Python has no year 58054, and shows times in the zone of the machine.
    data = F.to_json(F.struct(*[F.col(f"`{name}`") for name in names])).alias("data")
    return decoded.select(*COORDINATES, data, REASON, *extra).orderBy("_kafka_offset").collect()


def _outcome(row: Row, rejected: Row | None) -> Decoded:
    reason, columns = row[REASON], row.asDict()
    assert (rejected is None) == (reason is None)
    assert rejected is None or (rejected["reason"], rejected["key"]) == (reason, b"key")
    value = rejected["value"] if rejected else None
    return Decoded(
        row=None if reason else json.loads(row["data"]),
        unexpected=columns.get(UNEXPECTED),
        reason=reason,
        detail=rejected["detail"] if rejected else None,
        raw=bytes(value) if value is not None else None,
    )
