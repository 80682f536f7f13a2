"""The streaming driver: one stream, one process, from lease to drained.

    python -m ingest_platform.drivers.stream PATH/defs.yaml [--name NAME] [--available-now]

Exit codes: 0 drained or (with --available-now) caught up; 2, 3, 4 by the error tree.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click
from pyspark.sql import DataFrame, SparkSession

from ingest_platform.adapters.control_store import ControlStore
from ingest_platform.adapters.kafka_lag import LagProbe
from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.adapters.processes import this_process
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.adapters.termination import leave_last_words
from ingest_platform.drivers.diagnostics import Diagnostics, set_up_logging
from ingest_platform.drivers.failures import classify
from ingest_platform.drivers.heartbeat import Heartbeat, Progress, jvm_report, trigger_seconds
from ingest_platform.drivers.monitor import Monitor, alerts_of
from ingest_platform.drivers.preparation import Prepared, prepare
from ingest_platform.drivers.query import Query
from ingest_platform.errors import IngestError, LeaseLostError
from ingest_platform.maintain.auto_compaction.stream_compaction import StreamCompaction
from ingest_platform.model.lease import Lease
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport, JvmReport, Status
from ingest_platform.spark.client_mode import client_mode_conf
from ingest_platform.spark.conf import S3_CHECKPOINTS
from ingest_platform.spark.session import open_session
from ingest_platform.spec import KafkaEnvironment, StorageEnvironment, StreamSpec, load_spec
from ingest_platform.spec.alerts import AlertsSpec
from ingest_platform.stream.batch import BatchWriter, StreamContext
from ingest_platform.stream.checkpoint import Checkpoint
from ingest_platform.stream.decode import decode
from ingest_platform.stream.footers import footer_reader
from ingest_platform.stream.log_checkpoint import LogCheckpointer
from ingest_platform.stream.source import kafka_options, read_ranges, read_stream

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
    """One stream's driver. The batch thread is Spark's; `run` is the main thread."""

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
        self._failure: BaseException | None = None
        self._writer: BatchWriter | None = None
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
        prepared = prepare(self._spec, self._kafka, self._storage, self._checkpoint)
        lease = self._take_lease()
        log.info("stream %s took lease generation %d", self._spec.name, lease.generation)
        progress = Progress(base=self._base_status(lease, diagnostics), read=prepared.read)
        status = StatusStore(self._objects)
        alerts = self._options.alerts
        monitor = Monitor(self._spec, self._objects, self._environ, alerts, progress)
        self._observe = monitor.observe
        monitor.start()
        status.write(progress.status(JvmReport(), _now()))
        try:
            with self._session(diagnostics) as spark:
                self._stream(spark, prepared, lease, progress, status)
                progress.turn(StreamState.STOPPED, self._end_reason or "caught up")
                # Before the JVM ends, which takes a second that a successor need not wait for.
                self._last_word(lease, status, progress)
        except BaseException as error:
            if self._end_asked.is_set() and not isinstance(self._failure or error, IngestError):
                # Mostly a signal to the whole process group, which ended the JVM too. The batch is
                # as any that a kill interrupts: the next driver repeats it.
                log.warning("the last batch was interrupted: %s", self._failure or error)
                progress.turn(
                    StreamState.STOPPED, f"{self._end_reason}; the last batch was cut off"
                )
                return
            where = f"stream {self._spec.name}"
            failure = diagnostics.out_of_memory(begun, where) or classify(
                self._failure or error, where=where
            )
            self._report_failure(progress, failure)
            raise failure from error
        finally:
            self._last_word(lease, status, progress)
            monitor.close()
            signal.signal(signal.SIGTERM, on_signal)

    def _take_lease(self) -> Lease:
        return self._leases.take(f"{socket.gethostname()}:{os.getpid()}", "stream", _now())

    def _session(self, diagnostics: Diagnostics):  # noqa: ANN202  (a context manager of SparkSession)
        paths = (self._spec.table.path, self._spec.table.quarantine, self._spec.root)
        conf = {"spark.sql.files.maxRecordsPerFile": str(self._spec.table.max_records_per_file)}
        if self._spec.root.startswith("s3a://"):
            conf |= S3_CHECKPOINTS
        conf |= client_mode_conf(self._spec.spark, self._environ)
        return open_session(
            self._spec.spark.model_copy(update={"conf": conf | self._spec.spark.conf}),
            self._storage,
            app_name=f"ingest-{self._spec.name}",
            environ=self._environ,
            on_s3=any(path.startswith("s3a://") for path in paths),
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
        tables = prepared.tables(spark)
        log.info("tables are ready: %s and %s", self._spec.table.path, self._spec.table.quarantine)
        options = kafka_options(self._spec.source, self._kafka, self._spec.name)

        def decoded(most: int) -> DataFrame:
            records = read_stream(spark, self._spec.source, options, most, prepared.start)
            return decode(records, tables.data, self._spec.decode, tables.columns.reserved)

        checkpointer = LogCheckpointer(spark, self._spec.table.path)
        compaction = StreamCompaction(
            spark, self._spec, self._storage, self._objects, progress.compacted
        )

        def on_first_batch() -> BatchWriter:
            session = self._checkpoint.lineage() or ""
            with progress.lock:
                progress.base = replace(progress.base, session=session)
            context = StreamContext(
                spark=spark,
                spec=self._spec,
                schema=tables.data,
                reserved=tables.columns.reserved,
                session=session,
                ranges=self._checkpoint.ranges,
                reread=lambda ranges: read_ranges(
                    spark, options, ranges, f"ingest-{self._spec.name}-again"
                ),
                read_footer=footer_reader(self._spec.table.path, self._storage),
                committed=checkpointer.committed,
                fence=lambda: self._fence(lease),
                lag=progress.lag_after,
                transform=prepared.transform,
                reached=self._options.reached,
                writers=self._spec.table.target_writers or spark.sparkContext.defaultParallelism,
            )
            return BatchWriter(context, tables.columns.written)

        heartbeat = Heartbeat(
            progress,
            status,
            LagProbe(self._kafka, self._spec.source.all_topics),
            jvm=lambda: jvm_report(spark),
            triggers=lambda: trigger_seconds(spark),
            must_end=lambda: self._must_end(lease),
            end=self._ask_to_end,
            observe=self._observe,
        )

        def on_batch(batch_rows: DataFrame, batch: int) -> None:
            try:
                self._writer = self._writer or on_first_batch()
                ranges = self._checkpoint.ranges(batch)
                compaction.before_batch()
                report = self._writer.write(batch_rows, batch)
                if report:
                    compaction.committed()
                    progress.finished(report, ranges)
                    log.info(
                        "batch %d: %d rows, %d quarantined, %.2f s, version %s",
                        batch,
                        report.rows,
                        report.quarantined,
                        report.seconds,
                        report.table_version,
                    )
                else:
                    with progress.lock:
                        progress.advance(ranges)
                heartbeat.soon()
            except BaseException as error:
                self._failure = error  # Spark passes on its text only
                raise

        progress.turn(StreamState.RUNNING, "reading the topic")
        heartbeat.start()
        try:
            Query(
                name=self._spec.name,
                checkpoint=self._checkpoint.path,
                decoded=decoded,
                on_batch=on_batch,
                end_asked=self._end_asked,
                ending=lambda: progress.turn(
                    StreamState.DRAINING, self._end_reason or "asked to end"
                ),
                failed=lambda: self._failure is not None,
            ).run(
                self._spec.source.max_offsets_per_trigger,
                None if self._options.available_now else self._spec.trigger,
            )
        finally:
            compaction.close()
            checkpointer.close()
            heartbeat.close()

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

    def _report_failure(self, progress: Progress, failure: IngestError) -> None:
        state = StreamState.BACKOFF if failure.retryable else StreamState.FAILED
        progress.turn(state, failure.what)
        with progress.lock:
            progress.error = ErrorReport(
                kind=type(failure).__name__,
                message=failure.what,
                remedy=failure.remedy,
                retryable=failure.retryable,
                at=_now().isoformat(),
            )

    def _last_word(self, lease: Lease, status: StatusStore, progress: Progress) -> None:
        # A driver that lost or left its lease must not overwrite what its successor says.
        if self._said_last_word:
            return
        self._said_last_word = True
        with suppress(IngestError):
            if not self._leases.superseded(lease):
                status.write(progress.status(JvmReport(), _now()))
                self._leases.vacate(lease.generation, "its driver", _now())

    def _base_status(self, lease: Lease, diagnostics: Diagnostics) -> Status:
        return Status(
            stream=self._spec.name,
            session=self._checkpoint.lineage() or "",
            generation=lease.generation,
            started_at=_now().isoformat(),
            table=self._spec.table.path,
            runs_at=replace(
                this_process(self._environ.get("INGEST_LOG_FILE", ""), self._environ),
                gc_log=str(diagnostics.gc_log),
                heap_dumps=str(diagnostics.heap_dumps),
            ),
        )


def _now() -> datetime:
    return datetime.now(UTC)


def log_dir(name: str, environ: Mapping[str, str]) -> Path:
    """Where this stream's logs go: beside the launcher's log file, or `.ingest/logs/NAME`."""
    file = environ.get("INGEST_LOG_FILE")
    root = Path(environ.get("INGEST_LOG_DIR", ".ingest/logs"))
    return Path(file).parent if file else (root / name).absolute()


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
        leave_last_words(error, os.environ, _now())
        log.error("%s", error, exc_info=debug)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
