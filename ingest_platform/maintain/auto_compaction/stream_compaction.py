"""Auto compaction of one stream's table, as the stream's driver calls it around its batches."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.maintain.auto_compaction.dml_watch import MarkedDml
from ingest_platform.maintain.auto_compaction.fallback import FallbackPolicy
from ingest_platform.maintain.auto_compaction.markers import markers_uri
from ingest_platform.maintain.auto_compaction.optimize import ENABLED, SparkCompactor
from ingest_platform.maintain.auto_compaction.service import AutoCompactionService, Worker
from ingest_platform.maintain.auto_compaction.snapshot_files import SnapshotFiles
from ingest_platform.model.status import AutoCompactionReport
from ingest_platform.spec import StorageEnvironment, StreamSpec

log = logging.getLogger(__name__)

# Of the 30 s within which a driver must obey SIGTERM; the batch has most of them.
_CLOSE_SECONDS: Final = 4.0


class StreamCompaction:
    """`off`, `inline` or `async`, as the spec says; with `async`, whichever has its turn.

    Inline compaction is switched for the batch's own session: a table property would bind every
    other writer of the table too, and each switch would be a commit that conflicts with them.
    """

    def __init__(
        self,
        spark: SparkSession,
        spec: StreamSpec,
        storage: StorageEnvironment,
        objects: ObjectStore,
        changed: Callable[[AutoCompactionReport], None],
    ) -> None:
        """Start the service if the spec wants it.

        Args:
            spark: The driver's session.
            spec: The stream.
            storage: Credentials, for delta-rs.
            objects: The state below the spec's `root`, where DML is announced.
            changed: Told the counts for the status document, from any thread.

        Raises:
            EnvironmentFault: PySpark does not pin threads.
        """
        self._spark, self._table = spark, spec.table.path
        self._wanted, self._changed = spec.table.auto_compaction, changed
        self._service: AutoCompactionService | None = None
        if self._wanted == "async":
            self._service = open_service(
                spark,
                storage,
                objects,
                policy=FallbackPolicy(enabled=spec.table.auto_compaction_fallback),
                changed=changed,
            )
            changed(self._service.report(self._table))

    def before_batch(self) -> None:
        """Switch Delta's inline compaction on or off, for the batch that this thread begins."""
        if self._wanted == "off":
            return  # a user's own table property or setting decides
        inline = self._service is None or self._service.mode(self._table) == "inline"
        jvm: Any = self._spark._jvm
        # The query's own clone of the session, which Delta asks at the commit.
        active = jvm.org.apache.spark.sql.SparkSession.active()
        active.conf().set(ENABLED, str(inline).lower())

    def committed(self) -> None:
        """A batch has been committed."""
        if self._service:
            self._service.committed(self._table)
            self._changed(self._service.report(self._table))

    def close(self) -> None:
        """End what runs, within seconds."""
        if self._service:
            self._service.close(_CLOSE_SECONDS)
            self._changed(self._service.report(self._table))


def open_service(
    spark: SparkSession,
    storage: StorageEnvironment,
    objects: ObjectStore,
    *,
    policy: FallbackPolicy,
    changed: Callable[[AutoCompactionReport], None] = lambda _: None,
) -> AutoCompactionService:
    """Start a service on `spark` whose tables' DML is announced below `objects`."""
    compactor = SparkCompactor(
        spark,
        SnapshotFiles(storage),
        markers=lambda table: markers_uri(objects, table),
    )
    service = AutoCompactionService(
        compactor, MarkedDml(objects), policy=policy, changed=changed, make_worker=_pinned_thread
    )
    service.start()
    return service


def _pinned_thread(target: Callable[[], None]) -> Worker:
    """A thread with a JVM thread of its own, which ends with it."""
    return InheritableThread(target=target, name="auto-compaction", daemon=True)
