"""The streaming driver: one stream, one process, from lease to drained.

    python -m ingest_platform.drivers.stream PATH/defs.yaml [--name NAME] [--available-now]

Exit codes: 0 drained or (with --available-now) caught up; 2, 3, 4 by the error tree.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

import click
from pyspark.sql import SparkSession

from ingest_platform.adapters.control_store import ControlStore
from ingest_platform.adapters.kafka_lag import LagProbe
from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.adapters.processes import this_holder, this_process
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.adapters.termination import leave_last_words
from ingest_platform.drivers.batches import Batches
from ingest_platform.drivers.diagnostics import Diagnostics, set_up_logging
from ingest_platform.drivers.failures import classify
from ingest_platform.drivers.fitness import refuse_unfit
from ingest_platform.drivers.heartbeat import Heartbeat
from ingest_platform.drivers.jvm import jvm_report, trigger_seconds
from ingest_platform.drivers.monitor import Monitor, alerts_of
from ingest_platform.drivers.pipeline import Pipeline
from ingest_platform.drivers.preparation import Prepared, prepare
from ingest_platform.drivers.progress import Progress
from ingest_platform.drivers.query import Query
from ingest_platform.errors import IngestError, LeaseLostError
from ingest_platform.maintain.auto_compaction.stream_compaction import StreamCompaction
from ingest_platform.model.lease import Lease
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import JvmReport, Status
from ingest_platform.model.times import utc_now
from ingest_platform.spark.client_mode import client_mode_conf
from ingest_platform.spark.conf import S3_CHECKPOINTS
from ingest_platform.spark.session import open_session
from ingest_platform.spec import KafkaEnvironment, StorageEnvironment, StreamSpec, load_spec
from ingest_platform.spec.alerts import AlertsSpec
from ingest_platform.spec.environment import log_root
from ingest_platform.stream.batch import BatchWriter
from ingest_platform.stream.checkpoint import Checkpoint
from ingest_platform.stream.log_checkpointer import LogCheckpointer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """How this run differs from an ordinary one.

    `reached` is told each phase of a batch as it ends, so that a fault test can end the process
    exactly there.
    """

    available_now: bool = False
    log_dir: Path = Path(".ingest/logs")
    alerts: AlertsSpec = field(default_factory=lambda: AlertsSpec.model_validate({}))
    reached: Callable[[str], None] = lambda _: None


def run_stream(spec: StreamSpec, environ: Mapping[str, str], options: Options) -> None:
    """Run one stream until it is drained.

    Raises:
        IngestError: Whatever ended it otherwise; the status document says so too.
    """
    StreamDriver(spec, environ, options).run()


class StreamDriver:
    """One stream's driver. `run` is the main thread; the batches are on one of Spark's."""

    def __init__(self, spec: StreamSpec, environ: Mapping[str, str], options: Options) -> None:
        self._spec, self._environ, self._options = spec, environ, options
        self._storage = StorageEnvironment.from_env(environ)
        self._kafka = KafkaEnvironment.for_source(spec.source, environ)
        self._objects: ObjectStore = object_store(spec.root, self._storage)
        self._leases = LeaseStore(self._objects, spec.name)
        self._control = ControlStore(self._objects, spec.name)
        self._checkpoint = Checkpoint(self._objects, f"streams/{spec.name}/checkpoint")
        self._end_reason: str | None = None
        self._end_asked = threading.Event()
        self._batches: Batches | None = None
        self._said_last_word = False
        self._observe: Callable[[Status], None] = lambda _: None

    def run(self) -> None:
        """Take the lease, stream until asked to end, and leave the last word in the status."""
        diagnostics = Diagnostics(self._options.log_dir)
        diagnostics.prepare()
        begun = time.time()
        on_signal = signal.getsignal(signal.SIGTERM)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        refuse_unfit(self._spec, self._environ)
        prepared = prepare(self._spec, self._kafka, self._storage, self._checkpoint)
        lease = self._take_lease()
        log.info("stream %s took lease generation %d", self._spec.name, lease.generation)
        progress = Progress(base=self._base_status(lease, diagnostics), read=prepared.read)
        status = StatusStore(self._objects)
        alerts = self._options.alerts
        monitor = Monitor(self._spec, self._objects, self._environ, alerts, progress)
        self._observe = monitor.observe
        monitor.start()
        status.write(progress.status(JvmReport(), utc_now()))
        try:
            with self._session(diagnostics) as spark:
                self._stream(spark, prepared, lease, progress, status)
                progress.turn(StreamState.STOPPED, self._end_reason or "caught up")
                # Before the JVM ends, which takes a second that a successor need not wait for.
                self._last_word(lease, status, progress)
        except BaseException as error:
            failure = self._fault(error, begun, progress, diagnostics)
            if failure:
                raise failure from error
        finally:
            self._last_word(lease, status, progress)
            monitor.close()
            signal.signal(signal.SIGTERM, on_signal)

    def _take_lease(self) -> Lease:
        return self._leases.take(this_holder(), "stream", utc_now())

    def _session(self, diagnostics: Diagnostics):  # noqa: ANN202  (a context manager of SparkSession)
        conf = {"spark.sql.files.maxRecordsPerFile": str(self._spec.table.max_records_per_file)}
        if self._spec.root.startswith("s3a://"):
            conf |= S3_CHECKPOINTS
        conf |= client_mode_conf(self._spec.spark, self._environ)
        return open_session(
            self._spec.spark.model_copy(update={"conf": conf | self._spec.spark.conf}),
            self._storage,
            app_name=f"ingest-{self._spec.name}",
            environ=self._environ,
            on_s3=self._spec.on_s3,
            jvm_options=diagnostics.jvm_options(),
        )

    def _stream(
        self,
        spark: SparkSession,
        prepared: Prepared,
        lease: Lease,
        progress: Progress,
        status: StatusStore,
    ) -> None:
        log.info("Spark %s is up", spark.version)
        pipeline = Pipeline.open(spark, prepared, self._kafka, self._storage)
        log.info("tables are ready: %s and %s", self._spec.table.path, self._spec.table.quarantine)
        checkpointer = LogCheckpointer(
            spark, self._spec.table.path, helped=self._spec.maintenance.compaction.enabled
        )
        compaction = StreamCompaction(
            spark, self._spec, self._storage, self._objects, progress.compacted
        )
        heartbeat = self._heartbeat(spark, lease, progress, status)

        def open_writer() -> BatchWriter:
            session = self._checkpoint.lineage() or ""
            progress.in_session(session)
            return pipeline.writer(
                session,
                self._checkpoint.ranges,
                committed=checkpointer.committed,
                fence=lambda: self._fence(lease),
                lag=progress.lag_after,
                reached=self._options.reached,
            )

        self._batches = batches = Batches(
            open_writer, self._checkpoint.ranges, compaction, progress, heartbeat.soon
        )
        progress.turn(StreamState.RUNNING, "reading the topic")
        heartbeat.start()
        try:
            self._query(pipeline, batches, progress).run(
                self._spec.source.max_offsets_per_trigger,
                None if self._options.available_now else self._spec.trigger,
            )
        finally:
            compaction.close()
            checkpointer.close()
            heartbeat.close()

    def _heartbeat(
        self, spark: SparkSession, lease: Lease, progress: Progress, status: StatusStore
    ) -> Heartbeat:
        return Heartbeat(
            progress,
            status,
            LagProbe(self._kafka, self._spec.source.all_topics),
            jvm=lambda: jvm_report(spark),
            triggers=lambda: trigger_seconds(spark),
            must_end=lambda: self._must_end(lease),
            end=self._ask_to_end,
            observe=self._observe,
        )

    def _query(self, pipeline: Pipeline, batches: Batches, progress: Progress) -> Query:
        return Query(
            name=self._spec.name,
            checkpoint=self._checkpoint.path,
            decoded=pipeline.decoded,
            on_batch=batches.write,
            end_asked=self._end_asked,
            ending=lambda: progress.turn(StreamState.DRAINING, self._end_reason or "asked to end"),
            failed=lambda: batches.failure is not None,
        )

    def _fence(self, lease: Lease) -> None:
        if self._leases.superseded(lease):
            raise LeaseLostError(
                f"generation {lease.generation} was superseded; nothing more is committed",
                where=f"stream {self._spec.name}",
                remedy="nothing to do: the driver with the higher generation goes on",
            )

    def _must_end(self, lease: Lease) -> str | None:
        if self._leases.superseded(lease):
            return f"lease generation {lease.generation} was superseded"
        control = self._control.read()
        if control.pause:
            return f"paused by {control.pause.by}"
        return "drain was asked for" if control.drains(lease.generation) else None

    def _ask_to_end(self, reason: str) -> None:
        if not self._end_asked.is_set():
            log.info("ending: %s", reason)
            self._end_reason = reason
            self._end_asked.set()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._ask_to_end(f"received {signal.Signals(number).name}")

    def _fault(
        self, error: BaseException, begun: float, progress: Progress, diagnostics: Diagnostics
    ) -> IngestError | None:
        """What the driver ends with; None if `error` is no more than the way it was asked to end.

        `begun` is when it did, in seconds since 1970.
        """
        cause = (self._batches.failure if self._batches else None) or error
        if self._end_asked.is_set() and not isinstance(cause, IngestError):
            # Mostly a signal to the whole process group, which ended the JVM too. The batch is as
            # any that a kill interrupts: the next driver repeats it.
            log.warning("the last batch was interrupted: %s", cause)
            progress.turn(StreamState.STOPPED, f"{self._end_reason}; the last batch was cut off")
            return None
        where = f"stream {self._spec.name}"
        failure = diagnostics.out_of_memory(begun, where) or classify(cause, where=where)
        progress.failed(failure, utc_now())
        return failure

    def _last_word(self, lease: Lease, status: StatusStore, progress: Progress) -> None:
        # A driver that lost or left its lease must not overwrite what its successor says.
        if self._said_last_word:
            return
        self._said_last_word = True
        with suppress(IngestError):
            if not self._leases.superseded(lease):
                status.write(progress.status(JvmReport(), utc_now()))
                self._leases.vacate(lease.generation, "its driver", utc_now())

    def _base_status(self, lease: Lease, diagnostics: Diagnostics) -> Status:
        return Status(
            stream=self._spec.name,
            session=self._checkpoint.lineage() or "",
            generation=lease.generation,
            started_at=utc_now().isoformat(),
            table=self._spec.table.path,
            runs_at=replace(
                this_process(self._environ.get("INGEST_LOG_FILE", ""), self._environ),
                gc_log=str(diagnostics.gc_log),
                heap_dumps=str(diagnostics.heap_dumps),
            ),
        )


def log_dir(name: str, environ: Mapping[str, str]) -> Path:
    """Where this stream's logs go: beside the launcher's log file, or below `log_root`."""
    file = environ.get("INGEST_LOG_FILE")
    return Path(file).parent if file else log_root(environ) / name


@click.command(help=__doc__)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", help="Which stream, when the file declares several.")
@click.option("--available-now", is_flag=True, help="Drain what is there, then exit.")
@click.option("--standby-after", type=int, help="Get ready, then take over from this generation.")
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
@click.option("--debug", is_flag=True, help="Log more, and show stack traces.")
def main(
    *,
    path: Path,
    name: str | None,
    available_now: bool,
    standby_after: int | None,
    log_json: bool,
    debug: bool,
) -> None:
    """Entry point of the process that the launcher starts."""
    set_up_logging(as_json=log_json, debug=debug)
    try:
        spec = load_spec(path, os.environ, name)
        options = Options(
            available_now=available_now,
            log_dir=log_dir(spec.name, os.environ),
            alerts=alerts_of(path, os.environ),
        )
        if standby_after is None:
            run_stream(spec, os.environ, options)
        else:
            # Imported here, since a successor is a driver and more.
            from ingest_platform.drivers.standby import StandbyDriver  # noqa: PLC0415

            StandbyDriver(spec, os.environ, options, standby_after).run()
    except IngestError as error:
        # What is refused before the lease is taken reaches no status document.
        leave_last_words(error, os.environ, utc_now())
        log.error("%s", error, exc_info=debug)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
