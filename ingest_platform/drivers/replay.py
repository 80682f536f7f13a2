"""Replay a stream's rejected records: a session of its own, beside the stream's driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.drivers.preparation import Prepared, load_transform
from ingest_platform.drivers.sessions import session_for
from ingest_platform.errors import RepairUnderWayError, UserError
from ingest_platform.model.offsets import Positions
from ingest_platform.spec import StorageEnvironment, StreamSpec
from ingest_platform.stream.replay import Replay, Replayed

Reached = Callable[[str], None]


def run_replay(spec: StreamSpec, environ: Mapping[str, str]) -> Replayed:
    """Open a session, and replay into it; `spec` has the corrected schema.

    Raises:
        IngestError: Whatever went wrong; running it again goes on.
    """
    with session_for("replay", spec, environ) as spark:
        return replay(spark, spec, StorageEnvironment.from_env(environ))


def replay(
    spark: SparkSession,
    spec: StreamSpec,
    storage: StorageEnvironment,
    reached: Reached = lambda _: None,
) -> Replayed:
    """Replay in a session that is there.

    Raises:
        UserError: The table has no coordinates, by which a record could be found again.
        RepairUnderWayError: A repair takes rows out of the same tables.
    """
    if not spec.table.coordinates:
        raise UserError(
            "rejected records of a table without coordinates cannot be replayed exactly once",
            where=f"table.coordinates of {spec.name}",
            remedy="read them again from the topic: ingest-platform repair plan --since TIME",
        )
    leases = LeaseStore(object_store(spec.root, storage), spec.name)

    def fence() -> None:
        lease = leases.current()
        if lease is not None and lease.purpose == "repair":
            raise RepairUnderWayError(
                f"a repair by {lease.holder} is under way",
                where=f"stream {spec.name}",
                remedy="replay again when it is over",
            )

    fence()
    prepared = Prepared(spec, load_transform(spec.transform), Positions())
    tables = prepared.tables(spark)
    writers = spec.table.target_writers or spark.sparkContext.defaultParallelism
    parts = (tables.data, tables.columns, prepared.transform, writers, fence, reached)
    return Replay(spark, spec, *parts).run()
