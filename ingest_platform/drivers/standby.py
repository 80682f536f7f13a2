"""The successor of a driver: all that takes long is done while its predecessor still writes.

It opens its session, warms what the first batch needs, says that it is ready, and waits until the
predecessor has left its lease. Until then it writes nothing of the stream. Only then are checkpoint
and table looked at, since the predecessor moves both to its last moment.
"""

from __future__ import annotations

import logging
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from pyspark.sql import SparkSession

from ingest_platform.adapters.processes import this_holder, this_process
from ingest_platform.adapters.standby_store import StandbyStore
from ingest_platform.drivers.diagnostics import Diagnostics
from ingest_platform.drivers.fitness import refuse_unfit
from ingest_platform.drivers.preparation import check_surroundings
from ingest_platform.drivers.stream import Options, StreamDriver
from ingest_platform.errors import IngestError, LeaseLostError, RetryableFault
from ingest_platform.model.lease import Lease
from ingest_platform.model.standby import Standby
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StreamSpec
from ingest_platform.stream.decode import Decoder
from ingest_platform.stream.schema import data_schema

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2


class StandbyDriver(StreamDriver):
    """A driver that takes over from generation `follows`, and from no other."""

    def __init__(
        self, spec: StreamSpec, environ: Mapping[str, str], options: Options, follows: int
    ) -> None:
        super().__init__(spec, environ, options)
        self._follows = follows
        self._spark: SparkSession | None = None

    def run(self) -> None:
        """Get ready, wait, and stream as any driver; or end, if another one came first."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        refuse_unfit(self._spec, self._environ)
        check_surroundings(self._spec, self._kafka, self._storage)
        diagnostics = Diagnostics(self._options.log_dir)
        diagnostics.prepare()
        with super()._session(diagnostics) as spark:
            self._spark = spark
            self._rehearse(spark)
            here = this_process(self._environ.get("INGEST_LOG_FILE", ""), self._environ)
            ready = Standby(self._follows, here, utc_now().isoformat(timespec="seconds"))
            StandbyStore(self._objects, self._spec.name).write(ready)
            log.info("ready to take over from generation %d", self._follows)
            if self._its_turn_comes():
                super().run()

    def _session(self, diagnostics: Diagnostics):  # noqa: ANN202, ARG002
        return nullcontext(self._spark)

    def _take_lease(self) -> Lease:
        lease = self._leases.take_after(self._follows, this_holder(), utc_now())
        if lease is None:
            raise LeaseLostError(
                f"another driver has already taken over from generation {self._follows}",
                where=f"stream {self._spec.name}",
                remedy="nothing to do: that driver goes on",
            )
        return lease

    def _its_turn_comes(self) -> bool:
        """Wait until the predecessor has left its lease; False if this driver is not needed."""
        deadline = time.monotonic() + self._spec.supervision.start_within.total_seconds()
        while time.monotonic() < deadline:
            try:
                if self._leases.vacated(self._follows):
                    return True
                needless = self._needless()
            except RetryableFault as fault:
                log.warning("waiting: %s", fault.what)
                needless = None
            if needless:
                log.info("not needed: %s", needless)
                return False
            self._end_asked.wait(_POLL_SECONDS)
        log.info("not needed: generation %d goes on", self._follows)
        return False

    def _needless(self) -> str | None:
        if self._end_asked.is_set():
            return self._end_reason or "asked to end"
        lease = self._leases.current()
        if lease is None or lease.generation != self._follows:
            return f"generation {lease.generation if lease else 0} holds the lease"
        pause = self._control.read().pause
        return f"paused by {pause.by}" if pause else None

    def _rehearse(self, spark: SparkSession) -> None:
        """Read the table's log, decode some JSON and commit it to a table of no importance.

        A JVM's first batch spends most of its time on loading and compiling classes.
        """
        begun, scratch = time.monotonic(), Path(tempfile.mkdtemp(prefix="ingest-standby-"))
        try:
            values = spark.range(200).selectExpr(
                *("cast(null as binary) key", "cast('{}' as binary) value", "'t' topic"),
                *("0 partition", "id offset", "current_timestamp() timestamp"),
            )
            schema = data_schema(spark, self._spec.decode)
            decoded = Decoder(schema, self._spec.decode).rows(values)
            plain = [c for c in decoded.columns if not c.startswith("_")]
            for _ in range(2):
                rows = decoded.select("_kafka_offset", *plain)
                rows.write.format("delta").mode("append").save(str(scratch / "table"))
            if spark.read.format("delta").load(self._spec.table.path).schema:
                log.info("rehearsed in %.1f s", time.monotonic() - begun)
        except Exception as error:  # noqa: BLE001  (whatever a user's schema or a young table does)
            # What is really wrong the driver itself will say, when its turn has come.
            text = error.what if isinstance(error, IngestError) else type(error).__name__
            log.warning("the rehearsal was cut short: %s", text)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
