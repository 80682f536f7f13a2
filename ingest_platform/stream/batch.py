"""One micro-batch, from decoded records to a commit that accounts for every offset.

Order, and what a kill between two steps leaves behind:

1. write the data files        -> orphans that no reader sees; VACUUM removes them
2. commit the quarantine       -> the replay replaces exactly this batch's rows
3. commit table and ledger     -> the replay finds the batch committed, and does nothing
4. Spark writes `commits/N`    -> the batch is over
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql import types as T  # noqa: N812

from ingest_platform.errors import (
    CheckpointDamagedError,
    LedgerImbalanceError,
    UnexpectedFieldsError,
)
from ingest_platform.model.account import CLOSED
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRanges
from ingest_platform.model.status import BatchReport
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StreamSpec
from ingest_platform.stream import footers, quarantine
from ingest_platform.stream.decode import COORDINATES, REASON, TOMBSTONE, UNEXPECTED
from ingest_platform.stream.decode import UNEXPECTED_FIELDS as UNEXPECTED_REASON
from ingest_platform.stream.quarantine import Coordinate
from ingest_platform.stream.schema import RESCUED
from ingest_platform.stream.table import add_columns, refuse_other_types
from ingest_platform.stream.transaction import Transaction, WrittenFile

log = logging.getLogger(__name__)

# From this many records on, reading the footers back costs less than statistics row by row.
_LARGE_BATCH: Final = 100_000


@dataclass(frozen=True)
class StreamContext:
    """What every batch of one driver shares.

    Attributes:
        spark: The session.
        spec: The stream.
        schema: The data columns that values are decoded into.
        reserved: Columns of the table that no unexpected field may fill.
        session: Lineage of the checkpoint: the `txnAppId`.
        ranges: Offsets of a batch, from Spark's write-ahead log.
        reread: Reads ranges of Kafka once more, raw.
        read_footer: From a data file's path, relative to the table, to its Parquet footer.
        committed: Told each new version of the table.
        fence: Raises `LeaseLostError` when another driver took over; asked before each commit.
        lag: Offsets behind latest by `topic-partition`, as last seen.
        transform: The user's function, identity by default.
        writers: Tasks that write files: files per batch and partition.
        reached: Told the name of each phase of a batch as it ends, for fault tests.
    """

    spark: SparkSession
    spec: StreamSpec
    schema: T.StructType
    reserved: Collection[str]
    session: str
    ranges: Callable[[int], OffsetRanges]
    reread: Callable[[list[Any]], DataFrame]
    read_footer: footers.ReadFooter
    committed: Callable[[int], None]
    fence: Callable[[], None]
    lag: Callable[[OffsetRanges], Mapping[str, int]]
    transform: Callable[[DataFrame], DataFrame]
    writers: int
    reached: Callable[[str], None] = lambda _: None
    now: Callable[[], datetime] = utc_now


@dataclass(frozen=True)
class Counts:
    """What one pass over a batch saw: records, by reason, and where the rejected ones are."""

    read: int
    tombstones: int
    rejected: tuple[Coordinate, ...]
    new_fields: tuple[str, ...] = ()


@dataclass
class Phases:
    """Seconds by phase of one batch; `reached` is told of each phase that has ended."""

    reached: Callable[[str], None]
    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.perf_counter)

    def end(self, name: str) -> None:
        """Book the time since the last call under `name`."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now
        self.reached(name)


class BatchWriter:
    """The function that `foreachBatch` calls. One instance per driver, one call at a time."""

    def __init__(self, context: StreamContext, columns: T.StructType) -> None:
        """`columns` are the table's, generated ones left out; unexpected fields may add to them."""
        self._context = context
        self._columns = columns
        self._may_be_replay = True  # a driver's first batch may be one that a crash interrupted

    def write(self, decoded: DataFrame, batch: int) -> BatchReport | None:
        """Bring one batch into the table; None if it was there already.

        Raises:
            LedgerImbalanceError: Its counts do not balance; nothing was committed.
            UnexpectedFieldsError: The policy for unexpected fields is to fail, and there are some.
            LeaseLostError: Another driver took over; nothing was committed.
        """
        context = self._context
        started, phases = time.perf_counter(), Phases(context.reached)
        ranges = context.ranges(batch)
        phases.end("plan")
        txn = Transaction(context.spark, context.spec.table.path)
        last = txn.last_batch(context.session)
        if last >= CLOSED:
            raise _closed(context)
        if last >= batch:
            log.info("batch %d is in the table already: a replay after a crash", batch)
            return None
        phases.end("begin")
        files, counts = self._write_files(txn, decoded, ranges.width)
        phases.end("write")
        if counts.new_fields:
            self._add_columns(counts.new_fields)
            txn = Transaction(context.spark, context.spec.table.path)
            txn.last_batch(context.session)
            files, counts = self._write_files(txn, decoded, ranges.width)
            phases.end("add_columns")
        quarantined = self._quarantine(counts, batch)
        phases.end("quarantine")
        ledger = self._ledger(batch, ranges, files, counts, quarantined)
        context.fence()
        version = txn.commit(context.session, batch, ledger.to_user_metadata())
        context.committed(version)
        self._may_be_replay = False
        phases.end("commit")
        return BatchReport(
            id=batch,
            finished_at=context.now().isoformat(),
            rows=ledger.written,
            quarantined=ledger.quarantined,
            skipped=ledger.skipped,
            files=len(files),
            bytes=sum(f.bytes for f in files),
            seconds=time.perf_counter() - started,
            phases=phases.seconds,
            table_version=version,
        )

    def _write_files(
        self, txn: Transaction, decoded: DataFrame, records: int
    ) -> tuple[list[WrittenFile], Counts]:
        """Write the good rows and count all of them, in the one pass that reads Kafka."""
        observed, counts = self._observe(decoded)
        good = observed.filter(F.col(REASON).isNull()).coalesce(self._context.writers)
        rows = table_rows(good, self._context.spec, self._columns, self._context.transform)
        if records < _LARGE_BATCH:
            return txn.write(rows), counts()
        seen: list[Any] = []

        def from_footer(path: str) -> dict[str, Any]:
            seen.append(self._context.read_footer(path))
            return footers.statistics(seen[-1])

        files = txn.write(rows, from_footer)
        for column in footers.without_dictionary(seen):
            rows.sparkSession.conf.set(f"parquet.enable.dictionary#{column}", "false")
        return files, counts()

    def _observe(self, decoded: DataFrame) -> tuple[DataFrame, Callable[[], Counts]]:
        spec = self._context.spec.decode
        observation = Observation()
        tombstone = F.col(REASON) == TOMBSTONE
        bad = F.col(REASON).isNotNull()
        if spec.tombstones == "skip":
            bad = bad & ~tombstone
        place = F.struct("_kafka_topic", "_kafka_partition", "_kafka_offset")
        metrics = [
            F.count(F.lit(1)).alias("read"),
            F.count_if(tombstone).alias("tombstones"),
            F.collect_list(F.when(bad, place)).alias("rejected"),
        ]
        if spec.unexpected_fields == "add_columns":
            known = F.array(*[F.lit(name.lower()) for name in self._columns.names])
            names = F.filter(
                F.map_keys(UNEXPECTED), lambda name: ~F.array_contains(known, F.lower(name))
            )
            new = F.when(~bad & (F.size(names) > 0), names)
            metrics.append(F.collect_set(new).alias("new_fields"))

        def counts() -> Counts:
            seen = observation.get
            return Counts(
                read=int(seen["read"]),
                tombstones=int(seen["tombstones"]),
                rejected=tuple(Coordinate(*place) for place in seen["rejected"]),
                new_fields=_as_columns(seen.get("new_fields", ())),
            )

        return decoded.observe(observation, *metrics), counts

    def _add_columns(self, names: tuple[str, ...]) -> None:
        """Fields that no one declared become STRING columns: no later value can contradict that."""
        fields = [T.StructField(name, T.StringType()) for name in names]
        log.warning("adding columns for unexpected fields: %s", ", ".join(names))
        add_columns(self._context.spark, self._context.spec.table.path, fields)
        self._columns = T.StructType([*self._columns.fields, *fields])

    @cached_property
    def _rejected(self) -> quarantine.Rejected:
        context = self._context
        return quarantine.Rejected(context.schema, context.spec.decode, context.reserved)

    def _quarantine(self, counts: Counts, batch: int) -> int:
        context = self._context
        path = context.spec.table.quarantine
        if not counts.rejected:
            if self._may_be_replay:
                context.fence()
                quarantine.forget_batch(context.spark, path, session=context.session, batch=batch)
            return 0
        records = context.reread(quarantine.ranges_of(counts.rejected))
        rows = self._rejected.rows(records, counts.rejected)
        if context.spec.decode.tombstones == "skip":
            rows = rows.filter(F.col("reason") != TOMBSTONE)
        if context.spec.decode.unexpected_fields == "fail":
            _refuse_unexpected(rows, context.spec)
        context.fence()
        return quarantine.write_quarantine(
            context.spark,
            path,
            rows,
            session=context.session,
            batch=batch,
            now=context.now(),
        )

    def _ledger(
        self,
        batch: int,
        ranges: OffsetRanges,
        files: list[WrittenFile],
        counts: Counts,
        quarantined: int,
    ) -> Ledger:
        spec = self._context.spec
        written = sum(f.records for f in files)
        skipped = counts.tombstones if spec.decode.tombstones == "skip" else 0
        if spec.transform:
            # A transform may drop rows, which is the user's declared policy, but never add any.
            skipped += max(0, counts.read - len(counts.rejected) - skipped - written)
        ledger = Ledger(
            stream=spec.name,
            session=self._context.session,
            batch=batch,
            offsets=ranges,
            read=counts.read,
            written=written,
            quarantined=quarantined,
            skipped=skipped,
            gaps=ranges.width - counts.read if spec.source.gaps == "count" else 0,
            max_event_time=footers.newest(
                (f.stats for f in files), spec.table.event_time or "_kafka_timestamp"
            ),
            lag=self._context.lag(ranges),
        )
        problem = ledger.imbalance()
        if problem:
            raise LedgerImbalanceError(
                f"batch {batch} does not balance and was not committed: {problem}",
                where=f"stream {spec.name}, table {spec.table.path}",
                remedy="if the topic is compacted or transactional, set source.gaps: count; if a "
                "transform adds rows, mend it; otherwise please report this with the log",
            )
        return ledger


def table_rows(
    good: DataFrame,
    spec: StreamSpec,
    columns: T.StructType,
    transform: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """Decoded records as rows of the table.

    Args:
        good: Output of `Decoder`, without the rejected ones.
        spec: The stream.
        columns: Those of the table that are written.
        transform: The user's function.

    Raises:
        SpecError: The transform gives a column another type than the table has.
    """
    rows = good
    if spec.decode.unexpected_fields == "rescue":
        some = F.when(F.size(UNEXPECTED) > 0, F.to_json(UNEXPECTED))
        rows = rows.withColumn(RESCUED, some)
    if spec.decode.unexpected_fields == "add_columns":
        added = [n for n in columns.names if n not in rows.columns]
        rows = rows.select("*", *[_unexpected_field(name).alias(name) for name in added])
    rows = rows.drop(REASON, UNEXPECTED)
    if not spec.table.coordinates:
        rows = rows.drop(*COORDINATES)
    rows = transform(rows)
    refuse_other_types(rows.schema, columns)
    return rows


def _closed(context: StreamContext) -> CheckpointDamagedError:
    """Going on would find every batch committed already, and skip all of them."""
    return CheckpointDamagedError(
        f"session {context.session} was ended by a repair; nothing was committed",
        where=f"stream {context.spec.name}, table {context.spec.table.path}",
        remedy=f"finish the repair: ingest-platform repair plan {context.spec.name}",
    )


def _as_columns(new_fields: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """One name for each column; to Spark, names that differ in case only are the same column."""
    names = {name.lower(): name for field in new_fields for name in sorted(field, reverse=True)}
    return tuple(names[lowered] for lowered in sorted(names))


def _unexpected_field(column: str) -> Column:
    same = F.map_filter(UNEXPECTED, lambda name, _: F.lower(name) == column.lower())
    return F.get(F.map_values(same), F.lit(0))


def _refuse_unexpected(rows: DataFrame, spec: StreamSpec) -> None:
    first = rows.filter(F.col("reason") == UNEXPECTED_REASON).head()
    if first is None:
        return
    place = f"{first['_kafka_topic']}-{first['_kafka_partition']}@{first['_kafka_offset']}"
    raise UnexpectedFieldsError(
        "a record has fields that the schema does not name, and unexpected_fields is `fail`",
        where=f"stream {spec.name}, record {place}",
        remedy="add the fields to decode.schema, or choose ignore, rescue or add_columns",
    )
