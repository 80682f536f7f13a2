"""The driver's second thread: status document, lease, lag, drain requests.

It runs beside the batches and never touches them: a batch that hangs is seen as one whose heartbeat
goes on while nothing is committed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from ingest_platform.adapters.kafka_lag import LagProbe
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.errors import EnvironmentFault, IngestError
from ingest_platform.model.offsets import OffsetRanges, Positions
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import (
    AutoCompactionReport,
    BatchReport,
    ErrorReport,
    JvmReport,
    Status,
)

log = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0
_RECENT_BATCHES = 240


@dataclass
class Progress:
    """What the driver knows of itself; the batch thread writes it, the heartbeat reads it."""

    base: Status
    state: StreamState = StreamState.STARTING
    reason: str = "starting Spark"
    recent: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=_RECENT_BATCHES))
    totals: dict[str, int] = field(default_factory=dict)
    read: Positions = field(default_factory=Positions)
    behind: dict[str, int] = field(default_factory=dict)
    oldest_unread_age: float | None = None
    caught_up_at: str | None = None
    error: ErrorReport | None = None
    trigger_seconds: dict[int, float] = field(default_factory=dict[int, float])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def turn(self, state: StreamState, reason: str) -> None:
        """Change state."""
        with self.lock:
            self.state, self.reason = state, reason

    def finished(self, report: BatchReport, ranges: OffsetRanges) -> None:
        """Book one committed batch."""
        with self.lock:
            self.recent.append(report)
            for name in ("rows", "quarantined", "skipped", "files", "bytes"):
                self.totals[name] = self.totals.get(name, 0) + int(getattr(report, name))
            self.totals["batches"] = self.totals.get("batches", 0) + 1
            self.advance(ranges)

    def compacted(self, report: AutoCompactionReport) -> None:
        """Book the counts of asynchronous auto compaction."""
        with self.lock:
            self.base = replace(self.base, auto_compaction=report)

    def advance(self, ranges: OffsetRanges) -> None:
        """Everything up to the end of `ranges` is in the table."""
        merged = {t: dict(ps) for t, ps in self.read.by_topic.items()}
        for r in ranges:
            merged.setdefault(r.topic, {})[r.partition] = r.until
        self.read = Positions(merged)

    def lag_after(self, ranges: OffsetRanges) -> dict[str, int]:
        """The last seen lag, less what `ranges` takes away from it."""
        with self.lock:
            behind = dict(self.behind)
            for r in ranges:
                name = f"{r.topic}-{r.partition}"
                if name in behind:
                    read = self.read.get(r.topic, r.partition) or r.start
                    behind[name] = max(0, behind[name] - (r.until - read))
        return {name: n for name, n in behind.items() if n}

    def status(self, jvm: JvmReport, now: datetime) -> Status:
        """The document as of now."""
        with self.lock:
            recent = tuple(
                replace(b, trigger_seconds=self.trigger_seconds.get(b.id, 0.0)) for b in self.recent
            )
            return replace(
                self.base,
                state=self.state,
                reason=self.reason,
                updated_at=now.isoformat(),
                last_batch=recent[-1] if recent else None,
                recent=recent[-60:],
                totals=dict(self.totals),
                table_version=recent[-1].table_version if recent else None,
                input_rows_per_second=_rate(recent, now),
                processed_rows_per_second=_speed(recent[-5:]),
                offsets={
                    t: {str(p): o for p, o in ps.items()} for t, ps in self.read.by_topic.items()
                },
                behind=dict(self.behind),
                oldest_unread_age=self.oldest_unread_age,
                caught_up_at=self.caught_up_at,
                jvm=jvm,
                error=self.error,
            )


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
                at = datetime.now(UTC).isoformat()
                self._progress.error = ErrorReport(
                    kind, fault.what, fault.remedy, retryable=fault.retryable, at=at
                )

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


def jvm_report(spark: SparkSession) -> JvmReport:
    """Heap and collections of the driver's JVM, by its management beans."""
    jvm: Any = spark._jvm
    factory = jvm.java.lang.management.ManagementFactory
    heap = factory.getMemoryMXBean().getHeapMemoryUsage()
    collectors = list(factory.getGarbageCollectorMXBeans())
    after = 0
    for pool in factory.getMemoryPoolMXBeans():
        usage = pool.getCollectionUsage()
        if usage is not None:
            after += int(usage.getUsed())
    return JvmReport(
        heap_used=int(heap.getUsed()),
        heap_after_gc=after,
        heap_max=int(heap.getMax()),
        gc_seconds=sum(int(c.getCollectionTime()) for c in collectors) / 1000,
        gc_count=sum(int(c.getCollectionCount()) for c in collectors),
    )


def trigger_seconds(spark: SparkSession) -> dict[int, float]:
    """Duration of the last triggers by batch, as Spark's own progress reports say."""
    return {
        int(p["batchId"]): p["durationMs"]["triggerExecution"] / 1000
        for query in spark.streams.active
        for p in query.recentProgress
        if "addBatch" in p["durationMs"]
    }


def _rate(recent: tuple[BatchReport, ...], now: datetime) -> float:
    """Records per second that arrived, over the last minute or so of batches."""
    last = recent[-12:]
    if len(last) < 2:
        return 0.0
    span = (now - datetime.fromisoformat(last[0].finished_at)).total_seconds()
    return sum(_records(b) for b in last[1:]) / span if span > 0 else 0.0


def _speed(batches: tuple[BatchReport, ...]) -> float:
    """Records per second of batch time."""
    seconds = sum(b.seconds for b in batches)
    return sum(_records(b) for b in batches) / seconds if seconds else 0.0


def _records(batch: BatchReport) -> int:
    return batch.rows + batch.quarantined + batch.skipped
