"""What an operator waits for: `audit` of a long log, `status` of many streams, local and on S3.

    python -m ingest_platform_tests.benchmarks.bench_commands [--commits N] [--streams N]

Each command as it is typed, in a process of its own, interpreter and imports included. S3 is the
embedded server for `status` and a light one for `audit`, each also behind a line that makes a
request 5 and 20 ms longer. Writes `results/commands.json`; asserts nothing but that the commands
came out right.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import matplotlib as mpl
from matplotlib.figure import Figure as Picture
from rich.console import Console

from ingest_platform.adapters.housekeeping_store import HousekeepingStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.embedded.s3 import start_s3
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.benchmarks.figures import Figures
from ingest_platform_tests.benchmarks.light_s3 import LightS3
from ingest_platform_tests.benchmarks.long_log import LongLog
from ingest_platform_tests.benchmarks.results import FOLDER, write_results
from ingest_platform_tests.benchmarks.slow_line import SlowLine
from ingest_platform_tests.benchmarks.tables import figure_tables, target_table
from ingest_platform_tests.benchmarks.targets import Target
from ingest_platform_tests.factories import make_status

BUCKET: Final = "bench"
TITLES: Final = {"local": "local disk", "s3": "S3", "s3+5": "S3 + 5 ms", "s3+20": "S3 + 20 ms"}
ROUND_TRIPS: Final = {"s3": 0.0, "s3+5": 0.005, "s3+20": 0.02}
GOALS: Final = (("audit", 60.0), ("status", 1.0))  # seconds
NOTES: Final = (
    "seconds: from the start of the command's process to its end; CPU s: of that process alone.",
    "audit: a ledger of 25 partitions in each commit; every commit is read, none is cached.",
    "status: streams whose drivers have told a version, tables of 100 commits without a log "
    "checkpoint, checksums as Spark writes them.",
    "S3 servers are on the same machine, so they take their CPU from the command. audit's keeps "
    "its objects' names in memory: the embedded one walks the folder for each page of a listing.",
)


@dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    commits: int
    streams: int
    repeats: int


@dataclass(frozen=True)
class Place:
    """Where tables are: what commands call it, where its files are, and how it is reached."""

    lake: str
    files: Path
    environ: Mapping[str, str]


def run_command(place: Place, defs: Path, *arguments: str) -> tuple[dict[str, Any], float, float]:
    """Run `ingest-platform`; its document, seconds, and CPU seconds."""
    environ = {**os.environ, **place.environ, "INGEST_DEFS": str(defs)}
    command = [sys.executable, "-m", "ingest_platform.cli", *arguments, "--json"]
    cpu, began = _cpu(), time.perf_counter()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise click.ClickException(f"{arguments} failed:\n{done.stderr}")
    return json.loads(done.stdout), seconds, _cpu() - cpu


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make_streams(place: Place, defs: Path, streams: int) -> None:
    """Specs, tables and state of streams that run."""
    storage = StorageEnvironment.from_env(place.environ)
    state = object_store(f"{place.lake}/_ingest", storage)
    now = datetime.now(UTC)
    for number in range(streams):
        name = f"s{number:03}"
        (defs / name).mkdir(parents=True)
        attributes = {
            "name": name,
            "source": {"topic": "clickstream"},
            "decode": {"schema": "id STRING"},
            "table": {"path": f"{place.lake}/{name}"},
        }
        spec = {"type": "ingest_platform.KafkaDeltaTable", "attributes": attributes}
        (defs / name / "defs.yaml").write_text(json.dumps(spec))  # JSON is YAML, too
        log = LongLog(place.files / name / "_delta_log", commits=100)
        log.make()
        log.add_checksum()
        at = now.isoformat(timespec="seconds")
        status = replace(make_status(stream=name, updated_at=at, started_at=at), table_version=97)
        StatusStore(state).write(status)
        for action in ("compact", "vacuum"):
            HousekeepingStore(state, name).ran(action, now)


def long_log(place: Place, settings: Settings) -> LongLog:
    """The log that is audited."""
    return LongLog(place.files / "long" / "_delta_log", settings.commits)


def measure_audit(place: Place, where: str, settings: Settings, figures: Figures) -> None:
    """Audit a table by its path, some times."""
    for _ in range(settings.repeats):
        found, seconds, cpu = run_command(place, place.files, "audit", f"{place.lake}/long")
        if not found["clean"] or found["totals"]["read"] != long_log(place, settings).records():
            raise click.ClickException(f"the audit came out wrong: {found['findings'][:3]}")
        figures.add("audit", where, "seconds", seconds, "s")
        figures.add("audit", where, "CPU s", cpu, "s")


def measure_status(
    place: Place, where: str, defs: Path, settings: Settings, figures: Figures
) -> None:
    """Look at all streams, some times."""
    for _ in range(settings.repeats + 2):
        found, seconds, cpu = run_command(place, defs, "status")
        if [s["files"] for s in found["streams"]] != [100] * settings.streams:
            raise click.ClickException(f"status came out wrong: {found['streams'][0]}")
        figures.add("status", where, "seconds", seconds, "s")
        figures.add("status", where, "CPU s", cpu, "s")


@contextmanager
def far_away(place: Place, round_trip: float) -> Iterator[Place]:
    """The same place over a longer line."""
    if not round_trip:
        yield place
        return
    with SlowLine(place.environ["AWS_ENDPOINT_URL"], round_trip) as line:
        yield replace(place, environ={**place.environ, "AWS_ENDPOINT_URL": line.endpoint})


def goals(figures: Figures) -> Iterator[Target]:
    """Those that the figures can be held against."""
    for part, goal in GOALS:
        for where, title in TITLES.items():
            found = figures.get(part, where, "seconds")
            if found:
                yield Target(f"{part}, {title}", found.median, goal, "at most", "s")


def draw(figures: Figures, path: Path) -> None:
    """Bars with their spread, and the goal above them."""
    mpl.use("Agg")
    picture = Picture(figsize=(11, 3.8), layout="constrained")
    for number, (part, goal) in enumerate(GOALS, start=1):
        axes = picture.add_subplot(1, len(GOALS), number)
        found = {t: f for w, t in TITLES.items() if (f := figures.get(part, w, "seconds"))}
        below = [f.median - min(f.values) for f in found.values()]
        above = [max(f.values) - f.median for f in found.values()]
        heights = [f.median for f in found.values()]
        axes.bar(list(found), heights, yerr=(below, above), color="#1f6feb", capsize=4)
        axes.axhline(goal, color="#b5651d", ls="--", lw=1.0)
        axes.set(title=f"{part} (goal: {goal:g} s)", ylabel="seconds")
        axes.spines[["top", "right"]].set_visible(False)
    picture.savefig(path, dpi=130)


@click.command(help=__doc__)
@click.option("--commits", default=100_000, show_default=True, help="Of the audited log.")
@click.option("--streams", default=50, show_default=True, help="That status looks at.")
@click.option("--repeats", default=3, show_default=True, help="Rounds of each.")
@click.option("--name", default="commands", show_default=True, help="Of the results.")
def main(name: str, **options: int) -> None:
    """Measure, and print what came out."""
    settings, figures = Settings(**options), Figures()
    console = Console(width=None if sys.stdout.isatty() else 160)
    with tempfile.TemporaryDirectory(prefix="bench-commands-", ignore_cleanup_errors=True) as made:
        here = Place(f"{made}/lake", Path(made) / "lake", {})
        console.print(f"{settings.streams} streams, then a log of {settings.commits} commits")
        make_streams(here, Path(made) / "defs", settings.streams)
        measure_status(here, "local", Path(made) / "defs", settings, figures)
        long_log(here, settings).make()
        measure_audit(here, "local", settings, figures)
        console.print("the same log on S3")
        with LightS3(here.files, BUCKET) as light:
            for where, round_trip in ROUND_TRIPS.items():
                with far_away(
                    Place(f"s3a://{BUCKET}", here.files, light.environment), round_trip
                ) as place:
                    measure_audit(place, where, settings, figures)
        console.print("as many streams on S3")
        with start_s3(Path(made) / "s3", env=os.environ, bucket=BUCKET) as s3:
            files = Path(made) / "s3/data" / BUCKET / "lake"
            there = Place(f"s3a://{BUCKET}/lake", files, s3.environment())
            make_streams(there, Path(made) / "defs-s3", settings.streams)
            for where, round_trip in ROUND_TRIPS.items():
                with far_away(there, round_trip) as place:
                    measure_status(place, where, Path(made) / "defs-s3", settings, figures)
    targets = list(goals(figures))
    path = write_results(
        name, settings=asdict(settings), notes=NOTES, figures=figures, targets=targets, series={}
    )
    draw(figures, path.with_suffix(".png"))
    for table in figure_tables(figures, TITLES):
        console.print(table)
    console.print(target_table(targets))
    console.print(f"written: {path.relative_to(FOLDER.parent)}")


if __name__ == "__main__":
    main()
