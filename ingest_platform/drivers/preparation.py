"""Everything that can be refused before Spark is started, and the tables once it is."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (PySpark's own convention)

from ingest_platform.adapters.kafka_admin import KafkaAdmin
from ingest_platform.adapters.objects import object_store, prove_conditional_create
from ingest_platform.adapters.table_history import held_positions, newest_account
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.errors import (
    CheckpointDamagedError,
    OffsetsLostError,
    SpecError,
    TopicMissingError,
)
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.offsets import Positions
from ingest_platform.spec import KafkaEnvironment, StorageEnvironment, StreamSpec
from ingest_platform.stream.checkpoint import Checkpoint
from ingest_platform.stream.decode import COORDINATES
from ingest_platform.stream.schema import data_schema
from ingest_platform.stream.table import TableColumns, ensure_tables, table_schema

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tables:
    """Data columns that values are decoded into, and the table's columns."""

    data: T.StructType
    columns: TableColumns


@dataclass(frozen=True)
class Prepared:
    """A stream that may be started.

    Attributes:
        spec: The stream.
        transform: The user's function, or identity.
        read: Positions up to which the table holds the topic already.
        start: Where a new checkpoint starts after a repair; None: where the spec says.
    """

    spec: StreamSpec
    transform: Callable[[DataFrame], DataFrame]
    read: Positions
    start: Positions | None = None

    def tables(self, spark: SparkSession) -> Tables:
        """Create or check both tables.

        Raises:
            SpecError: The schema or the transform is wrong, or an existing table contradicts them.
        """
        data = data_schema(spark, self.spec.decode)
        columns = self._transformed(spark, table_schema(self.spec, data))
        return Tables(data, ensure_tables(spark, self.spec, columns))

    def _transformed(self, spark: SparkSession, columns: T.StructType) -> T.StructType:
        """The columns that the transform returns: they are the table's."""
        if not self.spec.transform:
            return columns
        try:
            result = self.transform(spark.createDataFrame([], columns)).schema
        except Exception as error:  # whatever a user's function may raise
            raise SpecError(
                f"the transform fails on the table's columns: {str(error).splitlines()[0]}",
                where=f"transform {self.spec.transform}",
                remedy="mend the function; it takes and returns a DataFrame",
            ) from error
        lost = [n for n in COORDINATES if n in columns.names and n not in result.names]
        if lost:
            raise SpecError(
                f"the transform drops {', '.join(lost)}",
                where=f"transform {self.spec.transform}",
                remedy="keep them; `table.coordinates: false` is for tables without them",
            )
        return T.StructType([T.StructField(f.name, f.dataType) for f in result.fields])


def check_surroundings(
    spec: StreamSpec, kafka: KafkaEnvironment, storage: StorageEnvironment
) -> Callable[[DataFrame], DataFrame]:
    """What a successor can check while its predecessor still writes; the transform.

    Raises:
        KafkaUnreachableError, TopicMissingError: The source is not there.
        StorageDeniedError, StorageUnavailableError, UnsafeStorageError: The storage is not fit.
        SpecError: The transform cannot be imported.
    """
    transform = load_transform(spec.transform)
    _check_topics(spec, kafka)
    for bucket in _buckets(spec):
        prove_conditional_create(object_store(bucket, storage), "_ingest_probe")
    return transform


def prepare(
    spec: StreamSpec, kafka: KafkaEnvironment, storage: StorageEnvironment, checkpoint: Checkpoint
) -> Prepared:
    """Check what can be checked without a JVM, in seconds.

    Raises:
        KafkaUnreachableError, TopicMissingError: The source is not there.
        StorageDeniedError, StorageUnavailableError, UnsafeStorageError: The storage is not fit.
        CheckpointDamagedError: Checkpoint and table contradict each other.
        SpecError: The transform cannot be imported.
    """
    transform = check_surroundings(spec, kafka, storage)
    if checkpoint.lineage() is None:
        _check_start(spec, kafka)
    checkpoint.verify()
    table = TableLog(spec.table.path, storage)
    account = newest_account(table, spec.name)
    if isinstance(account, RepairRecord):
        checkpoint.begins_at(account.start)
        start = _with_unread(account.start, spec, kafka)
        refuse_lost_offsets(spec, kafka, start)
        return Prepared(spec, transform, start, start)
    if account is not None and checkpoint.lineage() is None:
        held = _with_unread(held_positions(table, spec.name), spec, kafka)
        _check_new_session(spec, held, checkpoint.path)
        return Prepared(spec, transform, held)
    checkpoint.agree_with(account, spec.name)
    checkpoint.remove_stale_checksums()
    read = _read_so_far(checkpoint)
    refuse_lost_offsets(spec, kafka, read)
    return Prepared(spec, transform, read)


def refuse_lost_offsets(spec: StreamSpec, kafka: KafkaEnvironment, read: Positions) -> None:
    """Hold the next offsets to read against what the brokers hold.

    Raises:
        OffsetsLostError: With the exact gap of every partition that has one.
    """
    if not read.by_topic:
        return
    admin = KafkaAdmin(kafka)
    topics = [topic for topic in spec.source.all_topics if topic in read.by_topic]
    earliest, latest = admin.earliest(topics), admin.latest(topics)
    found: list[str] = []
    for topic, partition, position in read:
        if topic not in topics:  # no longer in the spec: nothing more is read from it
            continue
        begin, end = earliest.get(topic, partition), latest.get(topic, partition)
        if begin is None or end is None:
            found.append(f"{topic}-{partition} was read up to {position}, and is gone")
        elif position < begin:
            found.append(f"{topic}-{partition} [{position}, {begin}) is deleted")
        elif position > end:
            found.append(f"{topic}-{partition} was read up to {position}, but ends at {end}")
    if found:
        raise OffsetsLostError(
            f"the topic no longer holds what comes next: {'; '.join(found)}",
            where=f"{kafka.bootstrap_servers}, stream {spec.name}",
            remedy=f"nothing was skipped; see: ingest-platform repair plan {spec.name}",
        )


def _with_unread(held: Positions, spec: StreamSpec, kafka: KafkaEnvironment) -> Positions:
    """`held`, and 0 for partitions of which the table holds nothing: a start must name all."""
    admin = KafkaAdmin(kafka)
    return Positions(
        {
            topic: {p: held.get(topic, p) or 0 for p in admin.partitions(topic)}
            for topic in spec.source.all_topics
        }
    )


def _check_new_session(spec: StreamSpec, held: Positions, checkpoint: str) -> None:
    """A new checkpoint for a table that holds data already must start exactly where that ends.

    Only a person can know that the old checkpoint is really gone, so nothing is assumed; but what
    the person wrote is checked, since any other start would lose or double records.
    """
    start = spec.source.starting_offsets
    if isinstance(start, dict) and Positions.from_json(json.dumps(start)) == held:
        log.warning(
            "a new session of %s starts where the table ends: %s", spec.name, held.to_json()
        )
        return
    raise CheckpointDamagedError(
        f"the checkpoint is missing, but the table holds data of {spec.name}",
        where=checkpoint,
        remedy="bring the checkpoint back from a backup; or, if it is gone for good: "
        f"ingest-platform repair plan {spec.name} (it goes on exactly where the table ends, as "
        f"source.starting_offsets would: {held.to_json()})",
    )


def _read_so_far(checkpoint: Checkpoint) -> Positions:
    finished = checkpoint.finished()
    if finished < 0:
        return Positions()
    ends: dict[str, dict[int, int]] = {}
    for r in checkpoint.ranges(finished):
        ends.setdefault(r.topic, {})[r.partition] = r.until
    return Positions(ends)


def _buckets(spec: StreamSpec) -> set[str]:
    """The buckets that are written to. Local paths need no proof: link(2) is conditional."""
    return {"/".join(path.split("/")[:3]) for path in spec.paths if path.startswith("s3a://")}


def _check_topics(spec: StreamSpec, kafka: KafkaEnvironment) -> None:
    admin = KafkaAdmin(kafka)
    for topic in spec.source.all_topics:
        if not admin.exists(topic):
            raise TopicMissingError(
                f"topic {topic!r} does not exist, or this principal may not see it",
                where=f"{kafka.bootstrap_servers}, stream {spec.name}",
                remedy="create the topic, or correct source.topic",
            )


def _check_start(spec: StreamSpec, kafka: KafkaEnvironment) -> None:
    """Spark insists on all partitions, which also tells what a new stream is to skip."""
    start, admin = spec.source.starting_offsets, KafkaAdmin(kafka)
    if not isinstance(start, dict):
        return
    named = {f"{topic}-{partition}" for topic, offsets in start.items() for partition in offsets}
    there = {f"{t}-{p}" for t in spec.source.all_topics for p in admin.partitions(t)}
    if named != there:
        raise SpecError(
            f"starting_offsets must name every partition: missing {sorted(there - named)}, "
            f"unknown {sorted(named - there)}",
            where=f"source.starting_offsets of {spec.name}",
            remedy="give an offset for each; -2 is the earliest, -1 the latest",
        )


def load_transform(reference: str | None) -> Callable[[DataFrame], DataFrame]:
    """The user's function; identity without one.

    Raises:
        SpecError: It cannot be imported.
    """
    if reference is None:
        return lambda rows: rows
    module, _, function = reference.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a transform lives in the user's project, not in this package
    try:
        found: Any = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise SpecError(
            f"transform {reference!r} cannot be loaded: {error}",
            where="transform",
            remedy="give module:function, importable from the working directory",
        ) from error
    if not callable(found):
        raise SpecError(
            f"transform {reference!r} is not a function",
            where="transform",
            remedy="name a function",
        )
    return cast(Callable[[DataFrame], DataFrame], found)
