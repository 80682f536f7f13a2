"""Everything that can be refused before Spark is started, and the tables once it is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (PySpark's own convention)

from ingest_platform.adapters.kafka_admin import KafkaAdmin
from ingest_platform.adapters.objects import object_store, prove_conditional_create
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.errors import SpecError, TopicMissingError
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import Positions
from ingest_platform.spec import KafkaEnvironment, StorageEnvironment, StreamSpec
from ingest_platform.stream.checkpoint import Checkpoint
from ingest_platform.stream.schema import data_schema
from ingest_platform.stream.table import ensure_tables, table_schema


@dataclass(frozen=True)
class Tables:
    """Data columns that values are decoded into, and all columns that batches write."""

    data: T.StructType
    columns: T.StructType


@dataclass(frozen=True)
class Prepared:
    """A stream that may be started.

    Attributes:
        spec: The stream.
        transform: The user's function, or identity.
        read: Positions up to which the table holds the topic already.
    """

    spec: StreamSpec
    transform: Callable[[DataFrame], DataFrame]
    read: Positions

    def tables(self, spark: SparkSession) -> Tables:
        """Create or check both tables.

        Raises:
            SpecError: The schema is wrong, or an existing table contradicts it.
        """
        data = data_schema(spark, self.spec.decode)
        columns = ensure_tables(spark, self.spec, table_schema(self.spec, data))
        return Tables(data, columns)


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
    transform = _load_transform(spec.transform)
    _check_topics(spec, kafka)
    for bucket in _buckets(spec):
        prove_conditional_create(object_store(bucket, storage), "_ingest_probe")
    checkpoint.verify()
    ledger = newest_ledger(TableLog(spec.table.path, storage), spec.name)
    checkpoint.agree_with(ledger, spec.name)
    return Prepared(spec, transform, _read_so_far(checkpoint))


def newest_ledger(table: TableLog, stream: str) -> Ledger | None:
    """The ledger of the stream's newest data commit, however much maintenance came after it."""
    version = table.version()
    if version is None:
        return None
    for limit in (50, 1000, version + 1):
        for commit in reversed(table.commits(after=max(-1, version - limit), limit=limit)):
            if commit.ledger and commit.ledger.stream == stream:
                return commit.ledger
    return None


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
    paths = (spec.root, spec.table.path, spec.table.quarantine)
    return {"/".join(path.split("/")[:3]) for path in paths if path.startswith("s3a://")}


def _check_topics(spec: StreamSpec, kafka: KafkaEnvironment) -> None:
    admin = KafkaAdmin(kafka)
    for topic in spec.source.all_topics:
        if not admin.exists(topic):
            raise TopicMissingError(
                f"topic {topic!r} does not exist, or this principal may not see it",
                where=f"{kafka.bootstrap_servers}, stream {spec.name}",
                remedy="create the topic, or correct source.topic",
            )


def _load_transform(reference: str | None) -> Callable[[DataFrame], DataFrame]:
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
