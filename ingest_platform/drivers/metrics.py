"""The driver's figures in Prometheus' terms, taken from its own status document."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from datetime import timedelta

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ingest_platform.model.states import StreamState
from ingest_platform.model.status import AutoCompactionReport, Status
from ingest_platform.model.times import parse_time

_BUCKETS = (0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_TOTALS = {
    "rows": "Rows written to the table.",
    "quarantined": "Records written to the quarantine table.",
    "skipped": "Records dropped by a declared policy.",
    "files": "Files written.",
    "bytes": "Bytes written.",
    "batches": "Micro-batches committed.",
}


class DriverMetrics(Collector):
    """Serves what the last status says; the batches' durations are a histogram of their own.

    One process is one driver generation: counters begin at 0 with it, as Prometheus expects.
    """

    def __init__(self, status: Status) -> None:
        self._status, self._silent = status, math.nan
        self._last_batch = -1
        self._lock = threading.Lock()
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "ingest_batch_seconds",
            "Duration of micro-batches, without planning and checkpoint.",
            ["stream"],
            buckets=_BUCKETS,
            registry=self.registry,
        ).labels(status.stream)
        self.registry.register(self)

    def observe(self, status: Status) -> None:
        """Take over a newer status; batches that it has in addition are counted once."""
        with self._lock:
            self._status = status
            for batch in status.recent:
                if batch.id > self._last_batch:
                    self._seconds.observe(batch.seconds)
                    self._last_batch = batch.id

    def supervised(self, silent: timedelta | None) -> None:
        """Take over how long the supervisor has been silent; None if it never spoke."""
        self._silent = math.nan if silent is None else silent.total_seconds()

    def collect(self) -> Iterator[Metric]:
        """The figures, as of the last heartbeat."""
        status = self._status
        for name, text, value in (*_gauges(status), *self._supervisor()):
            family = GaugeMetricFamily(f"ingest_{name}", text, labels=["stream"])
            family.add_metric([status.stream], value)
            yield family
        for name, text, value in _counters(status):
            family = CounterMetricFamily(f"ingest_{name}", text, labels=["stream"])
            family.add_metric([status.stream], value)
            yield family
        states = GaugeMetricFamily(
            "ingest_state", "1 for the state that the driver is in.", labels=["stream", "state"]
        )
        for state in StreamState:
            states.add_metric([status.stream, state], float(status.state is state))
        yield states
        if status.auto_compaction:
            yield from _auto_compaction(status.stream, status.auto_compaction)

    def _supervisor(self) -> Iterator[tuple[str, str, float]]:
        text = "Seconds since the supervisor was last heard of; NaN if it never was."
        yield "supervisor_silent_seconds", text, self._silent


def _gauges(status: Status) -> Iterator[tuple[str, str, float]]:
    lag, jvm = status.oldest_unread_age, status.jvm
    yield "lag_seconds", "Age of the oldest unread record.", math.nan if lag is None else lag
    yield "lag_records", "Records behind the topic's end.", status.records_behind
    yield "input_records_per_second", "Records that arrive.", status.input_rows_per_second
    yield (
        "processed_records_per_second",
        "Records per second of batch time.",
        status.processed_rows_per_second,
    )
    yield "generation", "Lease generation of the driver.", status.generation
    yield "table_version", "Last version committed.", _or_nan(status.table_version)
    yield "started_timestamp_seconds", "Start of the driver.", _seconds(status.started_at)
    yield "heartbeat_timestamp_seconds", "Last heartbeat.", _seconds(status.updated_at)
    last = status.last_batch
    finished = _seconds(last.finished_at) if last else math.nan
    yield "last_batch_timestamp_seconds", "End of the last micro-batch.", finished
    yield "error", "1 while the last error stands.", float(status.error is not None)
    yield "heap_used_bytes", "Heap of the JVM in use.", jvm.heap_used
    yield "heap_after_gc_bytes", "Heap in use after the last collections.", jvm.heap_after_gc
    yield "heap_max_bytes", "Heap limit of the JVM.", jvm.heap_max


def _counters(status: Status) -> Iterator[tuple[str, str, float]]:
    yield from ((name, text, status.totals.get(name, 0)) for name, text in _TOTALS.items())
    yield "gc_seconds", "Time spent on garbage collections.", status.jvm.gc_seconds
    yield "gc_collections", "Garbage collections.", status.jvm.gc_count


def _auto_compaction(stream: str, report: AutoCompactionReport) -> Iterator[Metric]:
    """Absent unless the stream compacts asynchronously."""
    inline = float(report.mode == "inline")
    numbers = (
        (GaugeMetricFamily, "waiting", "Tables that wait for compaction.", report.waiting),
        (GaugeMetricFamily, "running", "Compactions at work.", report.running),
        (GaugeMetricFamily, "inline", "1 while it has fallen back to inline.", inline),
        (CounterMetricFamily, "fallbacks", "Times that it fell back to inline.", report.fallbacks),
        (CounterMetricFamily, "heals", "Times that it got through again.", report.heals),
        (CounterMetricFamily, "files_removed", "Small files merged.", report.files_removed),
        (CounterMetricFamily, "files_added", "Files written for them.", report.files_added),
    )
    for kind, name, text, value in numbers:
        family = kind(f"ingest_auto_compaction_{name}", text, labels=["stream"])
        family.add_metric([stream], value)
        yield family
    for name, label, text, counts in (
        ("submissions", "result", "What became of commits' submissions.", _submissions(report)),
        ("attempts", "outcome", "How attempts ended.", _attempts(report)),
    ):
        labels = ["stream", label]
        family = CounterMetricFamily(f"ingest_auto_compaction_{name}", text, labels=labels)
        for value, count in counts.items():
            family.add_metric([stream, value], count)
        yield family


def _submissions(report: AutoCompactionReport) -> dict[str, int]:
    return {
        "submitted": report.submitted,
        "coalesced": report.coalesced,
        "dropped": report.dropped,
    }


def _attempts(report: AutoCompactionReport) -> dict[str, int]:
    yielded = {f"yielded_{phase}": count for phase, count in report.yielded.items()}
    return {
        "completed": report.completed,
        "idle": report.idle,
        "error": report.errors,
        "cut_off": report.cut_off,
        **yielded,
    }


def _seconds(text: str) -> float:
    time = parse_time(text)
    return time.timestamp() if time else math.nan


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
