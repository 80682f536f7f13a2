"""Kafka to table, compared: a plain PySpark script, this platform, and one Python process.

    python -m ingest_platform_tests.benchmarks.bench_ingest [--rows N] [--repeats R] [--parts ...]

One broker, one 25-partition topic, the contenders in turn and in a different order each round.
Writes `results/ingest.json` and a plot beside it after each part; asserts nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ingest_platform.embedded.kafka import start_kafka
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform.spec import SourceSpec
from ingest_platform_tests.benchmarks import live, throughput
from ingest_platform_tests.benchmarks.batches import Clock
from ingest_platform_tests.benchmarks.clicks import PARTITIONS, ClickStream, fill
from ingest_platform_tests.benchmarks.contender import (
    Contender,
    Floor,
    Job,
    PlainScript,
    Platform,
)
from ingest_platform_tests.benchmarks.figures import Figures
from ingest_platform_tests.benchmarks.live import Pace
from ingest_platform_tests.benchmarks.plot import draw
from ingest_platform_tests.benchmarks.results import write_results
from ingest_platform_tests.benchmarks.run import ContenderFailedError
from ingest_platform_tests.benchmarks.tables import print_outcome
from ingest_platform_tests.benchmarks.targets import FIXED, STEADY, batch_clock, targets

PARTS = (throughput.PART, FIXED, STEADY)

NOTES = (
    "One broker with 512 MB of heap shares the machine with the contender that runs; its CPU and "
    "memory are not counted. Records are lz4-compressed.",
    "All contenders run until stopped, and are stopped before they reach the end of the topic.",
    "first N, first commit: from just before the process is made to the time of the log entry (or "
    "file) with which the records became readable. N is settings.rows.",
    "cold: the first N/4 records by the seconds from process start. warm: records per second "
    "between the commits that reached N and 2 N, in the same process.",
    "CPU: user and system seconds of the process tree per million records. peak memory: resident "
    "bytes of the process tree.",
    "fixed, steady: only batches that ended in the window count, after a backlog and a warm-up. "
    "Clocks: `checkpoint` from Spark's offsets/N to commits/N by file time, the same for (a) and "
    "(b); `trigger` Spark's own triggerExecution; `own` what the platform's driver books.",
    "live heap: after a forced full collection, before and after the window. growth over the "
    "second half: gain of the least-squares line over the window's second half, by the median.",
    "Medians over rounds; ratios are taken round by round.",
)


@dataclass(frozen=True)
class Settings:
    """Sizes, rates and times. The topic holds more than `rows`; see the notes."""

    rows: int
    repeats: int
    steady_repeats: int
    bad_share: float
    plain_batch: int
    platform_batch: int
    floor_batch: int
    fixed_seconds: float
    steady_seconds: float
    backlog: int
    warm_up_seconds: float

    def pace(self, part: str) -> Pace:
        """Of a live part: a trickle, or the rate of a busy web shop at the demo's trigger."""
        if part == FIXED:
            rate, trigger, seconds = 100, 1.0, self.fixed_seconds
        else:
            rate, trigger, seconds = 4000, 5.0, self.steady_seconds
        return Pace(part, rate, trigger, self.backlog, self.warm_up_seconds, seconds)


class Bench:
    """One execution: a broker, and what was measured so far."""

    def __init__(
        self,
        settings: Settings,
        contenders: Sequence[Contender],
        servers: str,
        folder: Path,
        progress: Progress,
    ) -> None:
        """`folder` is on a local disk; every run has a folder of its own in it while it lasts."""
        self._settings, self._contenders = settings, contenders
        self._servers, self._folder, self._progress = servers, folder, progress
        self._stream = ClickStream(settings.bad_share)
        self.figures = Figures()
        self.series: dict[str, list[dict[str, Any]]] = {}

    def run(self, part: str) -> None:
        """Measure one part and book its ratios."""
        if part == throughput.PART:
            self._throughput()
        else:
            self._live(part)
        for name in dict.fromkeys(f.name for f in self.figures if f.part == part):
            if not name.startswith(("phase ", "batches")) and "growth" not in name:
                self.figures.ratio(part, "b", "a", name)
                self.figures.ratio(part, "b", "a2", name)
                self.figures.ratio(part, "b", "c", name)

    def _throughput(self) -> None:
        settings, first = self._settings, self._settings.rows
        batch = max(settings.plain_batch, settings.platform_batch, settings.floor_batch)
        records = throughput.topic_records(first, batch)
        topic = self._topic("throughput", records)
        for number in range(settings.repeats):
            for contender in self._in_turn(self._contenders, number):
                what = f"throughput {number + 1}: ({contender.key}) {contender.title}"
                with self._job(topic, records, 0.0) as job, self._step(what, 2 * first) as told:
                    course = throughput.measure(contender, job, first, self.figures, told)
                entry = _throughput_series(contender.key, course)
                self.series.setdefault(throughput.PART, []).append(entry)

    def _live(self, part: str) -> None:
        repeats = self._settings.repeats if part == FIXED else self._settings.steady_repeats
        spark = [c for c in self._contenders if not isinstance(c, Floor)]
        windows = [
            (contender.key, self._window(part, number, contender))
            for number in range(repeats)
            for contender in self._in_turn(spark, number)
        ]
        clock = batch_clock(self.figures, part)
        self.series[part] = [_live_series(key, window, clock) for key, window in windows]

    def _window(self, part: str, number: int, contender: Contender) -> live.Window:
        pace = self._settings.pace(part)
        topic = self._topic(f"{part}-{number}-{contender.key}", pace.backlog)
        what = f"{part} {number + 1}: ({contender.key}) {contender.title}"
        with (
            self._job(topic, pace.backlog, pace.trigger_seconds) as job,
            self._step(what, int(pace.seconds)) as told,
        ):
            return live.measure(contender, job, pace, self._stream, self.figures, told)

    def _in_turn(self, contenders: Sequence[Contender], number: int) -> list[Contender]:
        """Another one begins each round, so that none always has the same predecessor's caches."""
        first = number % max(1, len(contenders))
        return [*contenders[first:], *contenders[:first]]

    def _topic(self, name: str, records: int) -> str:
        ensure_topic(self._servers, name, partitions=PARTITIONS)
        with self._step(f"producing {name}", records) as told:
            fill(self._servers, name, self._stream, records, now=time.time(), told=told)
        return name

    @contextmanager
    def _job(self, topic: str, records: int, trigger_seconds: float) -> Iterator[Job]:
        """A job in an empty folder that is removed afterwards, with a disk that has caught up."""
        folder = self._folder / "run"
        os.sync()  # else the writes of the run before are paid for by this one
        try:
            yield Job(self._servers, topic, records, folder, trigger_seconds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _step(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        task = self._progress.add_task(what, total=total)
        try:
            yield lambda done: self._progress.update(task, completed=done)
        finally:
            self._progress.stop_task(task)


def _throughput_series(key: str, course: throughput.Course) -> dict[str, Any]:
    return {
        "contender": key,
        "commit_seconds": [round(c.at - course.started_at, 2) for c in course.commits],
        "commit_records": [c.records for c in course.commits],
        "sample_seconds": [round(s.at - course.started_at, 1) for s in course.samples[::4]],
        "rss_mb": [round(s.rss / 1e6) for s in course.samples[::4]],
    }


def _live_series(key: str, window: live.Window, clock: Clock) -> dict[str, Any]:
    timed = [b for b in window.batches if clock in b.seconds]
    return {
        "contender": key,
        "clock": clock,
        "ended_seconds": [round(b.ended_at - window.start, 2) for b in timed],
        "seconds": [round(b.seconds[clock], 3) for b in timed],
        "rss_seconds": [round(at - window.start, 1) for at, _ in window.rss[::4]],
        "rss_mb": [round(rss / 1e6) for _, rss in window.rss[::4]],
        "heap_seconds": [round(at - window.start, 1) for at, _ in window.heap],
        "heap_after_gc_mb": [round(value / 1e6, 1) for _, value in window.heap],
    }


def _names(_context: click.Context, _option: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _publish(bench: Bench, settings: Settings, name: str, titles: dict[str, str]) -> Path:
    met = targets(bench.figures, settings.rows)
    path = write_results(
        name,
        settings=asdict(settings),
        notes=NOTES,
        figures=bench.figures,
        targets=met,
        series=bench.series,
    )
    draw(bench.series, titles, path.with_suffix(".png"))
    return path


@click.command(help=__doc__)
@click.option("--rows", default=4_000_000, show_default=True, help="N; about 2.3 N are produced.")
@click.option("--repeats", default=3, show_default=True, help="Rounds of throughput and fixed.")
@click.option("--steady-repeats", default=1, show_default=True, help="Rounds of steady.")
@click.option("--parts", default=",".join(PARTS), show_default=True, callback=_names)
@click.option("--contenders", default="a,a2,b,c", show_default=True, callback=_names)
@click.option("--bad-share", default=0.0, show_default=True, help="Share of bad records, 0 to 1.")
@click.option("--plain-batch", default=250_000, show_default=True, help="Records a batch of (a).")
@click.option(
    "--platform-batch",
    default=SourceSpec.model_fields["max_offsets_per_trigger"].default,
    show_default=True,
    help="Records a batch of (b).",
)
@click.option("--floor-batch", default=250_000, show_default=True, help="Records a file of (c).")
@click.option("--fixed-seconds", default=60.0, show_default=True, help="Window of part fixed.")
@click.option("--steady-seconds", default=180.0, show_default=True, help="Window of part steady.")
@click.option("--backlog", default=500_000, show_default=True, help="Warms fixed and steady.")
@click.option("--warm-up-seconds", default=30.0, show_default=True, help="After the backlog.")
@click.option("--name", default="ingest", show_default=True, help="Of the results.")
@click.option("--folder", type=click.Path(path_type=Path), help="Parent of the temporary folder.")
def main(
    parts: tuple[str, ...],
    contenders: tuple[str, ...],
    name: str,
    folder: Path | None,
    **options: Any,
) -> None:
    """Measure, and print what came out."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the children are ended
    settings = Settings(**options)
    every: tuple[Contender, ...] = (
        PlainScript(settings.plain_batch),
        PlainScript(settings.plain_batch, 2, "a2", "plain, snapshotPartitions 2"),
        Platform(settings.platform_batch),
        Floor(settings.floor_batch),
    )
    _refuse_unknown("--parts", parts, PARTS)
    _refuse_unknown("--contenders", contenders, tuple(c.key for c in every))
    chosen = [c for c in every if c.key in contenders]
    titles = {c.key: c.title for c in every}
    console = Console(width=None if sys.stdout.isatty() else 160)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        tempfile.TemporaryDirectory(
            prefix="bench-ingest-", dir=folder, ignore_cleanup_errors=True
        ) as temporary,
        start_kafka(Path(temporary) / "kafka", env=os.environ, console=console) as kafka,
        Progress(*columns, TimeElapsedColumn(), console=console) as progress,
    ):
        bench = Bench(settings, chosen, kafka.bootstrap_servers, Path(temporary), progress)
        for part in [part for part in PARTS if part in parts]:
            try:
                bench.run(part)
            except ContenderFailedError as error:
                raise click.ClickException(str(error)) from error
            path = _publish(bench, settings, name, titles)
    print_outcome(console, bench.figures, titles, targets(bench.figures, settings.rows), path)


def _refuse_unknown(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise click.UsageError(f"{option} takes some of {', '.join(known)}, not {unknown}")


if __name__ == "__main__":
    main()
