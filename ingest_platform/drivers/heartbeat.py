"""The driver's second thread: status document, lease, lag, drain requests.

It runs beside the batches and never touches them: a batch that hangs is seen as one whose heartbeat
goes on while nothing is committed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from ingest_platform.adapters.kafka_lag import LagProbe
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.drivers.progress import Progress
from ingest_platform.errors import EnvironmentFault, IngestError
from ingest_platform.model.status import ErrorReport, JvmReport, Status

log = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0


class Heartbeat(threading.Thread):
    """Writes the status document every few seconds, and says when the driver must end."""

    def __init__(
        self,
        progress: Progress,
        store: StatusStore,
        probe: LagProbe,
        *,
        jvm: Callable[[], JvmReport],
        triggers: Callable[[], dict[int, float]],
        must_end: Callable[[], str | None],
        end: Callable[[str], None],
        observe: Callable[[Status], None] = lambda _: None,
    ) -> None:
        """Bind the heartbeat to what it asks.

        Args:
            progress: What the batch thread writes.
            store: Where the document goes.
            probe: Asks the broker for the lag.
            jvm: Heap and collections.
            triggers: Seconds of the last triggers, by batch.
            must_end: A reason to end (lease lost, drain asked for), or None.
            end: Acts on such a reason.
            observe: Sees each status, also one that cannot be stored.
        """
        super().__init__(name="heartbeat", daemon=True)
        self._progress, self._store, self._probe = progress, store, probe
        self._jvm, self._triggers = jvm, triggers
        self._must_end, self._end, self._observe = must_end, end, observe
        self._lag_at = time.monotonic()
        self._done = threading.Event()
        self._beat_now = threading.Event()

    def run(self) -> None:
        """Beat until closed; a fault of storage or broker is logged and tried again."""
        while not self._done.is_set():
            try:
                self.beat()
            except IngestError as error:
                log.warning("heartbeat: %s", error.what)
            except Exception:
                # The JVM or a client may die under this thread while the driver ends; the batch
                # thread reports why. Dying silently here would look like a hung driver.
                log.warning("heartbeat failed", exc_info=True)
            self._beat_now.wait(PERIOD_SECONDS)
            self._beat_now.clear()

    def beat(self) -> None:
        """One round: lag, status document, orders.

        Without the brokers there is no lag to be known, but a heart that still beats: one that
        stopped would have the driver ended as hung.
        """
        try:
            self._look_at_lag()
            self._in_trouble(None)
        except EnvironmentFault as fault:
            log.warning("heartbeat: %s", fault.what)
            self._in_trouble(fault)
            self._lag_may_have_grown()
        with self._progress.lock:
            self._progress.trigger_seconds |= self._triggers()
        self.write()
        reason = self._must_end()
        if reason:
            self._end(reason)

    def soon(self) -> None:
        """Beat without waiting for the period: a batch has finished."""
        self._beat_now.set()

    def write(self) -> None:
        """Write the status document now."""
        status = self._progress.status(self._jvm(), datetime.now(UTC))
        self._observe(status)
        self._store.write(status)

    def close(self) -> None:
        """Stop beating and wait for the last beat."""
        self._done.set()
        self._beat_now.set()
        self.join(timeout=10)
        self._probe.close()

    def _in_trouble(self, fault: EnvironmentFault | None) -> None:
        """Say so in the status; since when counts from the first of the same kind."""
        with self._progress.lock:
            kind, before = type(fault).__name__, self._progress.error
            if self._done.is_set():
                return  # what ended the driver is its last word
            if fault is None:
                self._progress.error = None
            elif before is None or before.kind != kind:
                self._progress.error = ErrorReport.of(fault, datetime.now(UTC))

    def _lag_may_have_grown(self) -> None:
        """By as much as nobody knows it: "caught up" must not stand while nobody can look."""
        now = time.monotonic()
        with self._progress.lock:
            if self._progress.oldest_unread_age is not None:
                self._progress.oldest_unread_age += now - self._lag_at
        self._lag_at = now

    def _look_at_lag(self) -> None:
        progress = self._progress
        with progress.lock:
            read = progress.read
        if not read.by_topic:
            return
        behind = self._probe.behind(read)
        now = datetime.now(UTC)
        oldest = self._probe.oldest_unread(read, behind) if behind else None
        self._lag_at = time.monotonic()
        with progress.lock:
            progress.behind = behind
            if not behind:
                progress.oldest_unread_age, progress.caught_up_at = 0.0, now.isoformat()
            elif oldest is not None:
                progress.oldest_unread_age = max(0.0, (now - oldest).total_seconds())
            else:
                progress.oldest_unread_age = None
