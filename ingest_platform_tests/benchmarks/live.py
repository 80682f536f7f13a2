"""Parts `fixed` and `steady`: records that trickle in, micro-batches on a trigger, once warm.

Each run has a topic of its own with the same records in it: a backlog that warms the code, then a
steady rate. After a warm-up, a window of time is measured; batches count by their end in it. The
JVM is made to collect fully before and after the window, but never in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import get_args

from ingest_platform_tests.benchmarks.batches import (
    Batch,
    BatchSource,
    Clock,
    StatusReports,
    joined,
)
from ingest_platform_tests.benchmarks.clicks import ClickStream, Trickle
from ingest_platform_tests.benchmarks.contender import Contender, Job
from ingest_platform_tests.benchmarks.figures import Figures, growth, percentile
from ingest_platform_tests.benchmarks.live_heap import live_heap
from ingest_platform_tests.benchmarks.run import Run, running

_BACKLOG_SECONDS = 240.0
_LOOK_SECONDS = 0.5
_CLOSE_LOOK_SECONDS = 0.1
_COLLECTIONS = 3
_BATCH_SECONDS = 60.0
_REPORT_SECONDS = 7.0  # until the plain script has written its last progress report
_MEGA = 1e6


@dataclass(frozen=True)
class Pace:
    """How records come, and for how long.

    Attributes:
        part: `fixed` or `steady`.
        rate: Records per second.
        trigger_seconds: Time between batches.
        backlog: Records that are there before the start.
        warm_up_seconds: From the end of the backlog to the window.
        seconds: Length of the window.
    """

    part: str
    rate: int
    trigger_seconds: float
    backlog: int
    warm_up_seconds: float
    seconds: float


@dataclass(frozen=True)
class Window:
    """What one run showed, between two times in seconds since 1970.

    Attributes:
        batches: That ended in it.
        rss: Bytes of the process tree, by time.
        heap: `heap_after_gc` of the status document, by time; empty where there is none.
        live: Bytes of live objects before and after.
    """

    start: float
    end: float
    batches: tuple[Batch, ...]
    rss: tuple[tuple[float, int], ...]
    heap: tuple[tuple[float, float], ...]
    live: tuple[int, int]


def measure(
    contender: Contender,
    job: Job,
    pace: Pace,
    stream: ClickStream,
    figures: Figures,
    told: Callable[[int], None],
) -> Window:
    """Run one contender through warm-up and window, and book its figures.

    Args:
        contender: Must be a Spark program.
        job: Its topic holds the backlog.
        pace: How records come.
        stream: Makes them.
        figures: Booked here.
        told: Is called with the seconds of the window that have passed.

    Raises:
        ContenderFailedError: It failed, or has no batch in the window.
    """
    sources = contender.batch_sources(job)
    trickle = Trickle(job.bootstrap_servers, job.topic, stream, rate=pace.rate, first=pace.backlog)
    with running(contender, job) as run:
        _wait_for_backlog(run, sources, pace.backlog)
        with trickle:
            _watch(run, sources, pace.warm_up_seconds)
            before = _live_heap(run, sources)
            _watch(run, sources, 2 * pace.trigger_seconds)
            start = time.time()
            _watch(run, sources, pace.seconds, told)
            end = time.time()
            after = _live_heap(run, sources)
            _watch(run, sources, _REPORT_SECONDS)
    window = _window(run, sources, start, end, (before, after))
    if not window.batches:
        raise run.fail(f"finished no batch within {pace.seconds} s")
    _book_batches(contender.key, pace, window, figures)
    _book_memory(contender.key, pace.part, window, figures)
    return window


def _live_heap(run: Run, sources: Sequence[BatchSource]) -> int:
    """Least of three collections, each right after a batch: what a batch holds is no growth."""
    pid, found = run.tree.java_pid(), []
    for _ in range(_COLLECTIONS):
        commits = len(run.timeline.commits())
        deadline = time.monotonic() + _BATCH_SECONDS
        while len(run.timeline.commits()) == commits and time.monotonic() < deadline:
            _watch(run, sources, _CLOSE_LOOK_SECONDS)
        found.append(live_heap(pid))
    return min(found)


def _wait_for_backlog(run: Run, sources: Sequence[BatchSource], records: int) -> None:
    deadline = time.monotonic() + _BACKLOG_SECONDS
    while run.records() < records:
        _watch(run, sources, _LOOK_SECONDS)
        if time.monotonic() > deadline:
            raise run.fail(f"has only {run.records()} of {records} records")


def _watch(
    run: Run,
    sources: Sequence[BatchSource],
    seconds: float,
    told: Callable[[int], None] = lambda _: None,
) -> None:
    start = time.monotonic()
    while (passed := time.monotonic() - start) < seconds:
        run.check()
        for source in sources:
            source.look()
        told(int(passed))
        time.sleep(min(_LOOK_SECONDS, seconds - passed))
    told(int(seconds))


def _window(
    run: Run,
    sources: Sequence[BatchSource],
    start: float,
    end: float,
    live: tuple[int, int],
) -> Window:
    heap = {
        at: jvm["heap_after_gc"]
        for source in sources
        if isinstance(source, StatusReports)
        for at, jvm in source.heap.items()
    }
    return Window(
        start=start,
        end=end,
        batches=tuple(b for b in joined(sources) if start <= b.ended_at <= end),
        rss=tuple((s.at, s.rss) for s in run.tree.samples if start <= s.at <= end),
        heap=tuple(sorted((at, value) for at, value in heap.items() if start <= at <= end)),
        live=live,
    )


def _book_batches(key: str, pace: Pace, window: Window, figures: Figures) -> None:
    part = pace.part
    figures.add(part, key, "batches", len(window.batches), "batches")
    clock: Clock
    for clock in get_args(Clock):
        seconds = [b.seconds[clock] for b in window.batches if clock in b.seconds]
        if not seconds:
            continue
        figures.add(part, key, f"batch p50, {clock} clock", median(seconds), "s")
        figures.add(part, key, f"batch p95, {clock} clock", percentile(seconds, 95), "s")
        figures.add(part, key, f"batch max, {clock} clock", max(seconds), "s")
        ratio = max(seconds) / median(seconds)
        figures.add(part, key, f"batch max / p50, {clock} clock", ratio, "ratio")
    for phase in sorted({name for b in window.batches for name in b.phases}):
        seconds = [b.phases.get(phase, 0.0) for b in window.batches if b.phases]
        figures.add(part, key, f"phase {phase} p50", median(seconds), "s")


def _book_memory(key: str, part: str, window: Window, figures: Figures) -> None:
    before, after = window.live
    figures.add(part, key, "live heap before", before / _MEGA, "MB")
    figures.add(part, key, "live heap after", after / _MEGA, "MB")
    figures.add(part, key, "live heap growth", 100 * (after - before) / before, "%")
    half = (window.start + window.end) / 2
    for name, series in (("RSS", window.rss), ("heap after GC", window.heap)):
        late = [(at, value) for at, value in series if at >= half]
        if len(late) < 2:
            continue
        times, values = [at for at, _ in late], [float(value) for _, value in late]
        middle = median(values)
        figures.add(part, key, f"{name} p50", middle / _MEGA, "MB")
        if middle:
            gain = 100 * growth(times, values) / middle
            figures.add(part, key, f"{name} growth over the second half", gain, "%")
