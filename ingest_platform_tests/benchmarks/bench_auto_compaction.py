"""Inline against asynchronous auto compaction: what a writer of small files waits for.

    python -m ingest_platform_tests.benchmarks.bench_auto_compaction [--writes N] [--repeats R]

The workload of Delta's pull request 7090: 50 sequential writes of 8 small files. Both ways run in
one JVM, in turn and in a different order each round, each round on new tables. Writes
`results/auto-compaction.json` and a plot beside it; asserts nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import click
from rich.console import Console

from ingest_platform.spark.session import open_session
from ingest_platform.spec import SparkSpec, StorageEnvironment
from ingest_platform_tests.benchmarks.compaction_course import WAYS, Course, Way, Writer
from ingest_platform_tests.benchmarks.compaction_plot import draw
from ingest_platform_tests.benchmarks.figures import Figures, percentile
from ingest_platform_tests.benchmarks.results import write_results
from ingest_platform_tests.benchmarks.tables import print_outcome
from ingest_platform_tests.benchmarks.targets import Target

PART: Final = "writes"
QUERIES: Final = "queries"
TITLES: Final = {"inline": "Delta's post-commit hook", "async": "beside the writes"}

NOTES = (
    "One Spark session (local[*]) as the platform opens it. Each write appends rows in 8 files to "
    "a table without partitions, on a local disk, with the platform's table properties: the log's "
    "checkpoints are written by neither way.",
    "Same trigger in both: settings.min_files small files. Before the first measured write comes "
    "one that is not measured, because Delta's hook compacts at the first write of a process "
    "however few files there are.",
    "A write's time is that of the call, with the submission to the service where there is one. "
    "drain: from the end of the last write until the service is idle. end to end: total and drain.",
    "CPU of all: user and system seconds of the process and its JVM until the drain is over.",
    "queries: three on the final table, after the drain, each the median of settings.queries "
    "executions on a new snapshot.",
    "Percentiles are by nearest rank over the writes of a round: of 50, p99 is the slowest. Pooled "
    "ones are over the writes of all rounds.",
    "Rounds in which each way runs first alternate; a short round of each before them is "
    "thrown away. "
    "Medians over rounds; ratios are taken round by round.",
)


@dataclass(frozen=True)
class Settings:
    """Sizes of the run."""

    writes: int
    warm_writes: int
    files: int
    rows: int
    min_files: int
    repeats: int
    queries: int


class Bench:
    """What was measured so far; whole rounds only."""

    def __init__(self, writer: Writer, settings: Settings, console: Console) -> None:
        self._writer, self._settings, self._console = writer, settings, console
        self.courses: list[Course] = []

    def warm_up(self) -> None:
        """A short round of each, thrown away: a JVM's first writes are several times slower."""
        for way in WAYS:
            self._run(way, "warm-up", self._settings.warm_writes)

    def round(self, number: int) -> None:
        """Measure both, in a different order each round."""
        ways = WAYS if number % 2 else WAYS[::-1]
        title, writes = f"round {number + 1}", self._settings.writes
        self.courses += [self._run(way, title, writes) for way in ways]

    def finished(self) -> Figures:
        """The figures with ratios, and with percentiles over all rounds."""
        figures = Figures()
        for course in self.courses:
            _book(figures, course)
        for way in WAYS:
            pooled = [s for c in self.courses if c.way == way for s in c.seconds]
            for percent in (50, 95, 99):
                value = 1000 * percentile(pooled, percent)
                figures.add(PART, way, f"pooled p{percent}", value, "ms")
        for part, name in dict.fromkeys((f.part, f.name) for f in figures if f.unit == "ms"):
            figures.ratio(part, "inline", "async", name)
        return figures

    def _run(self, way: Way, title: str, writes: int) -> Course:
        course = self._writer.run(way, writes)
        took = f"{sum(course.seconds):.1f} s, {course.cpu:.0f} CPU-s"
        self._console.print(f"{title}: {way} {took}")
        return course


def _book(figures: Figures, course: Course) -> None:
    milliseconds = [1000 * s for s in course.seconds]
    values = {
        "total": sum(milliseconds),
        "mean": sum(milliseconds) / len(milliseconds),
        **{f"p{p}": percentile(milliseconds, p) for p in (50, 95, 99)},
        "max": max(milliseconds),
        "min": min(milliseconds),
        "end to end": sum(milliseconds) + 1000 * course.drain,
    }
    for name, value in values.items():
        figures.add(PART, course.way, name, value, "ms")
    if course.way == "async":
        figures.add(PART, course.way, "drain", 1000 * course.drain, "ms")
    figures.add(PART, course.way, "CPU of all", course.cpu, "s")
    figures.add(PART, course.way, "OPTIMIZE commits", course.optimizes, "commits")
    figures.add(PART, course.way, "files at the end", course.files, "files")
    for name, seconds in course.queries.items():
        figures.add(QUERIES, course.way, name, 1000 * seconds, "ms")


_GOALS: Final[tuple[tuple[str, str, str, Literal["at least", "at most"], float], ...]] = (
    ("total, inline / async", PART, "total", "at least", 1.6),
    ("p95, inline / async", PART, "p95", "at least", 2.5),
    ("p99, inline / async", PART, "p99", "at least", 2.5),
)


def goals(figures: Figures) -> list[Target]:
    """The goals with the medians measured for them."""
    found = [(goal, figures.get(goal[1], "inline/async", goal[2])) for goal in _GOALS]
    targets = [
        Target(name, figure.median, goal, bound, "ratio")
        for (name, _, _, bound, goal), figure in found
        if figure
    ]
    queries = [f for f in figures if f.part == QUERIES and f.contender == "inline/async"]
    if queries:
        # 5 %: what two runs of the same query on the same table differ by.
        slowest = max(1 / figure.median for figure in queries)
        targets.append(Target("slowest query, async / inline", slowest, 1.05, "at most", "ratio"))
    return targets


@contextmanager
def _writer(settings: Settings, folder: Path) -> Iterator[Writer]:
    spec = SparkSpec(master="local[*]", driver_memory="2g")
    with open_session(
        spec, StorageEnvironment(), app_name="bench", environ=os.environ, on_s3=False
    ) as spark:
        yield Writer(
            spark,
            folder,
            files=settings.files,
            rows=settings.rows,
            min_files=settings.min_files,
            queries=settings.queries,
        )


def _series(course: Course) -> dict[str, Any]:
    return {
        "contender": course.way,
        "seconds": [round(s, 4) for s in course.seconds],
        "drain": round(course.drain, 3),
        "service": course.report,
    }


@click.command(help=__doc__)
@click.option("--writes", default=50, show_default=True, help="Measured writes a round.")
@click.option("--warm-writes", default=15, show_default=True, help="Writes to warm up, of both.")
@click.option("--files", default=8, show_default=True, help="Files a write.")
@click.option("--rows", default=4000, show_default=True, help="Rows a write.")
@click.option("--min-files", default=24, show_default=True, help="Small files that trigger.")
@click.option(
    "--repeats", type=click.IntRange(1), default=5, show_default=True, help="Rounds of both."
)
@click.option("--queries", default=7, show_default=True, help="Executions of each query.")
@click.option("--name", default="auto-compaction", show_default=True, help="Of the results.")
def main(name: str, **options: Any) -> None:
    """Measure, and print what came out."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the JVM is ended
    settings, console = Settings(**options), Console(width=None if sys.stdout.isatty() else 160)
    folder = Path(tempfile.mkdtemp(prefix="bench-auto-compaction-"))
    try:
        with _writer(settings, folder) as writer:
            bench = Bench(writer, settings, console)
            bench.warm_up()
            for number in range(settings.repeats):
                bench.round(number)
                path = _publish(bench, settings, name)  # each round, lest a late fault cost all
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_outcome(console, bench.finished(), TITLES, goals(bench.finished()), path)


def _publish(bench: Bench, settings: Settings, name: str) -> Path:
    figures = bench.finished()
    path = write_results(
        name,
        settings=asdict(settings),
        notes=NOTES,
        figures=figures,
        targets=goals(figures),
        series={PART: [_series(course) for course in bench.courses]},
    )
    draw(bench.courses, path.with_suffix(".png"))
    return path


if __name__ == "__main__":
    main()
