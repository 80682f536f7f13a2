"""Two days of a table in fast motion: everything in one driver, and the platform's drivers apart.

    python -m ingest_platform_tests.benchmarks.bench_drift [--batches N] [--minutes N] [--forms F,F]

As many batches, files and runs of maintenance as 48 hours at a trigger of 15 s make are 11,500
batches; the short form is of 1,000. Each batch holds 15 s of event time, so hours pass by every
240 batches; compaction comes every 60, vacuum every 240. Writes `results/drift.json` and a plot
beside it; asserts nothing.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import psutil
from confluent_kafka import Producer
from deltalake import DeltaTable
from rich.console import Console

from ingest_platform.embedded.kafka import start_kafka
from ingest_platform.embedded.process import ChildProcess
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform_tests.benchmarks.drift_forms import (
    DriversApart,
    Form,
    Life,
    OneDriver,
    running,
)
from ingest_platform_tests.benchmarks.drift_plot import draw
from ingest_platform_tests.benchmarks.figures import Figures, growth, percentile
from ingest_platform_tests.benchmarks.live_heap import class_histogram, live_heap
from ingest_platform_tests.benchmarks.results import write_results
from ingest_platform_tests.benchmarks.tables import print_outcome
from ingest_platform_tests.benchmarks.targets import Target
from ingest_platform_tests.benchmarks.thread_profile import sample

PART: Final = "drift"
FORMS: Final[tuple[Form, ...]] = (OneDriver(), DriversApart())
TITLES: Final = {form.key: form.title for form in FORMS}
PARTITIONS: Final = 5

_LOOK_SECONDS: Final = 0.5
_STALLED_SECONDS: Final = 600.0
_WARM_UP: Final = 0.1
_SHARE: Final = 0.05
_CLASSES: Final = 12
_COLLECTIONS: Final = 3  # one may fall into a batch, whose buffers live for a moment
_SAMPLES: Final = 60
_SAMPLE_SECONDS: Final = 0.1

NOTES = (
    "Both read the same number of records a batch, as fast as they can, on a local disk with 1 GB "
    "of heap. batch: from Spark's offsets/N to commits/N by file time.",
    "The first tenth of the batches is warm-up. first, last: the medians of the first and the last "
    "twentieth of the others. live heap: the least after three forced full collections, every "
    "settings.look_every batches, with 60 samples of the query's thread after them; the batches "
    "meanwhile are left out.",
    "The script maintains its table in a thread of the same driver; the platform's maintenance is "
    "in a process of its own (one for all runs, since the start of a JVM would come each minute).",
    "Retention is five minutes, so that vacuum has work in the short form too.",
)


@dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    batches: int
    records: int
    look_every: int
    minutes: float | None = None


@dataclass
class Course:
    """What one form showed, by batch number.

    Attributes:
        seconds: Duration of each batch.
        looked: Batches at which the heap was collected, and the thread sampled.
        disturbed: Batches that ran meanwhile.
        heap: Live bytes then.
        files: Live files of the table then.
        log_bytes: Bytes of the table's log then.
        classes: Live bytes by class then.
        profiles: What the query's thread was at then: shares by cause.
    """

    seconds: dict[int, float] = field(default_factory=dict[int, float])
    looked: list[int] = field(default_factory=list[int])
    disturbed: set[int] = field(default_factory=set[int])
    heap: list[int] = field(default_factory=list[int])
    files: list[int] = field(default_factory=list[int])
    log_bytes: list[int] = field(default_factory=list[int])
    classes: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    profiles: list[dict[str, float]] = field(default_factory=list[dict[str, float]])

    @property
    def warm_up(self) -> float:
        """The batch before which nothing counts."""
        return max(self.seconds) * _WARM_UP

    def warm(self) -> list[float]:
        """Seconds of the batches after warm-up, without those that a look disturbed."""
        first, counted = self.warm_up, self.seconds.keys() - self.disturbed
        return [self.seconds[n] for n in sorted(counted) if n >= first]


def measure(form: Form, life: Life, settings: Settings, told: Console) -> Course:
    """Let the form live for so many batches, or minutes if they are over first."""
    course, source = Course(), form.clock(life)
    end = time.monotonic() + 60 * (settings.minutes or math.inf)
    with running(form, life) as (child, upkeep):
        newest, moved, looked = -1, time.monotonic(), 0
        while newest < settings.batches - 1 and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
            source.look()
            done = source.batches()
            if done and max(done) > newest:
                newest, moved = max(done), time.monotonic()
                upkeep.reached(newest)
            _check(child, time.monotonic() - moved)
            if newest // settings.look_every > looked:
                looked = newest // settings.look_every
                _look(course, child, life, newest)
                source.look()
                course.disturbed.update(range(newest, max(source.batches()) + 2))
                told.print(f"{form.key}: batch {newest}, {course.heap[-1] / 1e6:.0f} MB live")
        _look(course, child, life, newest)
        course.seconds = {n: b.seconds["checkpoint"] for n, b in source.batches().items()}
    return course


def _check(child: ChildProcess, idle: float) -> None:
    if child.popen.poll() is not None or idle > _STALLED_SECONDS:
        raise click.ClickException(f"{child.name} did not get on:\n{child.log_tail()}")


def _look(course: Course, child: ChildProcess, life: Life, batch: int) -> None:
    pid = next(
        p.pid for p in psutil.Process(child.pid).children(recursive=True) if p.name() == "java"
    )
    course.looked.append(batch)
    course.heap.append(min(live_heap(pid) for _ in range(_COLLECTIONS)))
    course.profiles.append(_shares(sample(pid, _SAMPLES, every=_SAMPLE_SECONDS)))
    table = DeltaTable(str(life.table))
    course.files.append(len(table.file_uris()))
    log = life.table / "_delta_log"
    sizes = 0
    for file in log.iterdir():
        with suppress(FileNotFoundError):  # a checkpoint's draft
            sizes += file.stat().st_size
    course.log_bytes.append(sizes)
    course.classes.append(class_histogram(pid))


def _shares(samples: Counter[str]) -> dict[str, float]:
    return {name: round(n / samples.total(), 3) for name, n in samples.most_common()}


def book(form: Form, course: Course, settings: Settings, figures: Figures) -> None:
    """Book what the goals are about, and what explains it."""
    warm = course.warm()
    share = max(1, int(len(warm) * _SHARE))
    first, last = median(warm[:share]), median(warm[-share:])
    megabytes = [heap / 1e6 for heap in course.heap]
    late = [i for i, n in enumerate(course.looked) if n >= course.warm_up]
    grown = growth([course.looked[i] for i in late], [megabytes[i] for i in late])
    rows = (
        ("batches", max(course.seconds) + 1, "batches"),
        ("first", first, "s"),
        ("last", last, "s"),
        ("last / first", last / first, "ratio"),
        ("p50", percentile(warm, 50), "s"),
        ("p99", percentile(warm, 99), "s"),
        ("p99 / p50", percentile(warm, 99) / percentile(warm, 50), "ratio"),
        ("live heap at the start", megabytes[late[0]], "MB"),
        ("live heap at the end", megabytes[-1], "MB"),
        ("live heap growth", 100 * grown / megabytes[late[0]], "%"),
        ("live files at the end", course.files[-1], "files"),
        ("log at the end", course.log_bytes[-1] / 1e6, "MB"),
    )
    for name, value, unit in rows:
        figures.add(PART, form.key, name, value, unit)


def goals(figures: Figures) -> list[Target]:
    """Of the platform's form."""
    wanted = (
        ("batches: last 5 % / first 5 %", "last / first", 1.1),
        ("batches: p99 / p50", "p99 / p50", 2.0),
        ("live heap flat: growth over the run", "live heap growth", 5.0),
    )
    found = ((name, figures.get(PART, "platform", figure), goal) for name, figure, goal in wanted)
    return [Target(name, f.median, goal, "at most", f.unit) for name, f, goal in found if f]


def grown_classes(course: Course, look: int) -> list[dict[str, Any]]:
    """The classes whose live objects had grown most by that look, since the first."""
    before, after = course.classes[0], course.classes[look]
    gains = {name: size - before.get(name, 0) for name, size in after.items()}
    most = sorted(gains.items(), key=lambda item: -item[1])[:_CLASSES]
    return [{"class": name, "grown_bytes": gain, "bytes": after[name]} for name, gain in most]


def fill(servers: str, topic: str, settings: Settings) -> None:
    """Produce all records; each batch's worth is 15 s of event time."""
    ensure_topic(servers, topic, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50})
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for n in range(settings.records * (settings.batches + 20)):
        at = start + timedelta(seconds=15) * (n / settings.records)
        value = {"id": n, "event_time": at.isoformat(), "page": f"/page/{n % 97}"}
        producer.produce(topic, json.dumps(value).encode(), partition=n % PARTITIONS)
        if n % 10_000 == 0:
            producer.poll(0)
            producer.flush()
    producer.flush()


def series_of(course: Course) -> dict[str, Any]:
    """What a plot shows of it: medians of 20 batches, and what was seen at each look."""
    numbers = sorted(course.seconds)
    groups = [numbers[i : i + 20] for i in range(0, len(numbers), 20)]
    return {
        "batch": [g[0] for g in groups],
        "seconds": [round(median(course.seconds[n] for n in g), 3) for g in groups],
        "looked": course.looked,
        "heap_mb": [round(h / 1e6, 1) for h in course.heap],
        "files": course.files,
        "log_mb": [round(b / 1e6, 2) for b in course.log_bytes],
        "grown_classes": grown_classes(course, -1),
        "grown_when_fullest": grown_classes(course, course.heap.index(max(course.heap))),
        "profiles": course.profiles,
    }


@click.command(help=__doc__)
@click.option("--batches", default=1_000, show_default=True, help="11500 is 48 h at 15 s.")
@click.option("--minutes", type=float, help="At most so long for each form.")
@click.option("--records", default=200, show_default=True, help="Records a batch.")
@click.option("--look-every", default=100, show_default=True, help="Batches between heap looks.")
@click.option("--forms", default=",".join(TITLES), show_default=True, help="Which, in order.")
@click.option("--name", default="drift", show_default=True, help="Of the results.")
@click.option("--drawn-with", help="Name of earlier results whose forms the plot shows as well.")
@click.option("--folder", type=click.Path(path_type=Path), help="Parent of the temporary folder.")
def main(
    forms: str, name: str, drawn_with: str | None, folder: Path | None, **options: Any
) -> None:
    """Measure, and print what came out."""
    settings, figures = Settings(**options), Figures()
    console = Console(width=None if sys.stdout.isatty() else 160)
    chosen = [form for form in FORMS if form.key in forms.split(",")]
    courses: dict[str, Course] = {}
    with (
        tempfile.TemporaryDirectory(
            prefix="bench-drift-", dir=folder, ignore_cleanup_errors=True
        ) as made,
        start_kafka(Path(made) / "kafka", env=os.environ) as kafka,
    ):
        fill(kafka.bootstrap_servers, "clicks", settings)
        for form in chosen:
            life = Life(kafka.bootstrap_servers, "clicks", settings.records, Path(made) / form.key)
            courses[form.key] = measure(form, life, settings, console)
            book(form, courses[form.key], settings, figures)
            shutil.rmtree(life.folder, ignore_errors=True)
    series = {key: series_of(course) for key, course in courses.items()}
    path = write_results(
        name,
        settings=asdict(settings),
        notes=NOTES,
        figures=figures,
        targets=goals(figures),
        series=series,
    )
    beside = json.loads(path.with_stem(drawn_with).read_text())["series"] if drawn_with else {}
    draw({**beside, **series}, TITLES, path.with_suffix(".png"))
    print_outcome(console, figures, TITLES, goals(figures), path)


if __name__ == "__main__":
    main()
