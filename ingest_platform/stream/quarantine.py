"""Rejected records, with their raw bytes, into the quarantine table: exactly once as well."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql import types as T  # noqa: N812

from ingest_platform.model.offsets import OffsetRange
from ingest_platform.model.user_metadata import to_user_metadata
from ingest_platform.spec import DecodeSpec
from ingest_platform.stream.decode import (
    COORDINATES,
    RAW,
    REASON,
    UNDECODABLE,
    Decoder,
    beyond_calendar,
)
from ingest_platform.stream.table import QUARANTINE_SCHEMA
from ingest_platform.stream.transaction import Transaction

# Above this many, looking each coordinate up costs more than decoding the whole range again.
_LISTED_AT_MOST = 20_000


@dataclass(frozen=True, order=True)
class Coordinate:
    """One record's place in Kafka."""

    topic: str
    partition: int
    offset: int


def ranges_of(rejected: Iterable[Coordinate]) -> list[OffsetRange]:
    """The tightest range per partition that holds every rejected record."""
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for c in rejected:
        low, high = spans.get((c.topic, c.partition), (c.offset, c.offset))
        spans[c.topic, c.partition] = (min(low, c.offset), max(high, c.offset))
    return [OffsetRange(t, p, low, high + 1) for (t, p), (low, high) in sorted(spans.items())]


class Rejected:
    """Decodes raw records once more and keeps the rejected ones, with the reason in detail.

    Its columns are made once: making them takes thousands of calls to the JVM, which cost a batch
    some 0.3 s.
    """

    def __init__(
        self, schema: T.StructType, spec: DecodeSpec, reserved: Collection[str] = ()
    ) -> None:
        """`schema`, `spec` and `reserved` are those of `Decoder`."""
        self._decode = Decoder(schema, spec, reserved, raw=True)
        self._columns = [
            *[F.col(name) for name in COORDINATES],
            *[F.col(name).alias(column) for name, column in RAW.items()],
            F.col(REASON).alias("reason"),
            _detail(schema).alias("detail"),
        ]

    def rows(self, records: DataFrame, rejected: Sequence[Coordinate]) -> DataFrame:
        """The quarantine table's record columns of those at `rejected` among Kafka's `records`."""
        if len(rejected) <= _LISTED_AT_MOST:
            records = records.filter(_among(rejected))
        return self._decode.rows(records).filter(F.col(REASON).isNotNull()).select(*self._columns)


def forget_batch(spark: SparkSession, path: str, *, session: str, batch: int) -> None:
    """Remove what a crashed attempt at this batch left, which now has no rejected records."""
    if Transaction(spark, path).last_batch(session) >= batch:
        DeltaTable.forPath(spark, path).delete(_of_batch(session, batch))


def write_quarantine(
    spark: SparkSession, path: str, rows: DataFrame, *, session: str, batch: int, now: datetime
) -> int:
    """Commit one batch's rejected rows and return their number.

    A replayed batch (a crash came between this commit and the table's) replaces what it wrote
    before: the decoder may have been mended in between, and then rejects other records.
    """
    # Beneath the single task, so that the values of this batch are not part of the code that Spark
    # generates for the decoding: it would be compiled anew for each batch.
    complete = (
        rows.coalesce(1)
        .select(
            "*",
            F.lit(batch).cast("bigint").alias("batch"),
            F.lit(session).alias("session"),
            F.lit(now).alias("quarantined_at"),
        )
        .select(*QUARANTINE_SCHEMA.names)
    )
    txn = Transaction(spark, path)
    if txn.last_batch(session) >= batch:
        condition = _of_batch(session, batch)
        writer = complete.write.format("delta").mode("overwrite")
        writer.option("replaceWhere", condition).save(path)
        return int(spark.read.format("delta").load(path).filter(condition).count())
    files = txn.write(complete)
    written = sum(f.records for f in files)
    txn.commit(session, batch, _metadata(session, batch, written))
    return written


def _of_batch(session: str, batch: int) -> str:
    return f"session = '{session}' AND batch = {batch}"


def _among(rejected: Sequence[Coordinate]) -> Column:
    # As text, since Spark writes numbers into the code that it generates, and compiles that anew
    # for each batch.
    place = F.concat_ws("/", "topic", "partition", "offset")
    return place.isin([f"{c.topic}/{c.partition}/{c.offset}" for c in rejected])


def _detail(schema: T.StructType) -> Column:
    """Which fields have the wrong type, for records that are JSON objects at all."""
    text = F.col("_raw_value").cast("string")
    fields = F.from_json(text, "map<string,string>")
    wrong: list[Column] = []
    for f in schema.fields:
        single = T.StructType([f, T.StructField("_bad", T.StringType())])
        parsed = F.from_json(text, single, {"columnNameOfCorruptRecord": "_bad"})
        message = F.concat(
            F.lit(f"{f.name} is no {f.dataType.simpleString()}: "),
            F.left(fields[f.name], F.lit(80)),
        )
        bad = parsed["_bad"].isNotNull() | beyond_calendar(parsed[f.name], f.dataType)
        missing = parsed[f.name].isNull() & F.lit(not f.nullable)
        wrong.append(F.when(bad, message).when(missing, f"{f.name} is null"))
    document = F.try_parse_json(text)
    return F.when(
        F.col(REASON) == UNDECODABLE,
        F.when(document.isNull(), F.lit("not one valid JSON value"))
        .when(~F.startswith(F.schema_of_variant(document), F.lit("OBJECT")), "not a JSON object")
        .when(F.length(F.concat_ws("; ", *wrong)) > 0, F.concat_ws("; ", *wrong))
        .otherwise("something follows the JSON object, or it is nested 1,000 levels deep"),
    )


def _metadata(session: str, batch: int, written: int) -> str:
    body = {"session": session, "batch": batch, "quarantined": written}
    return to_user_metadata("ingest_quarantine", body)
