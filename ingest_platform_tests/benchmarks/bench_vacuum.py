"""Vacuum of many expired files in many partitions on S3: plain `VACUUM` and the platform's.

    python -m ingest_platform_tests.benchmarks.bench_vacuum [--expired N] [--partitions P]

Both on tables that are alike, each in a process of its own, in turn. Writes `results/vacuum.json`
and a plot beside it; asserts nothing but that both deleted the same files.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click
import matplotlib as mpl
from matplotlib.figure import Figure
from rich.console import Console

from ingest_platform.embedded.process import spawn
from ingest_platform.embedded.s3 import S3Server, start_s3
from ingest_platform_tests.benchmarks.expired_table import ExpiredTable
from ingest_platform_tests.benchmarks.figures import Figures
from ingest_platform_tests.benchmarks.results import write_results
from ingest_platform_tests.benchmarks.tables import print_outcome
from ingest_platform_tests.benchmarks.targets import Target

PART: Final = "vacuum"
TITLES: Final = {"plain": "VACUUM with defaults", "platform": "ingest_platform"}
UNITS: Final = {"seconds": "s", "requests": "requests", "listings": "requests", "tasks": "tasks"}
BUCKET: Final = "bench"

NOTES = (
    "Files of 512 bytes, removed by the log's second commit eight days ago; default retention.",
    "seconds: of the vacuum alone; Spark runs already, with local[2] for both.",
    "tasks: all that Spark ran, from its event log. requests: all that S3A and boto3 sent, "
    "listings are among them; delta-rs's few reads of the log are not counted.",
    "The S3 server is on the same machine and disk: a request takes some milliseconds, where S3 "
    "takes tens. The ratio of requests says more about S3 than the ratio of seconds.",
)


@dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    expired: int
    partitions: int
    repeats: int


def measure(
    how: str, number: int, settings: Settings, s3: S3Server, folder: Path
) -> dict[str, Any]:
    """Make a table, vacuum it in a process of its own, and look at what is left."""
    name, client = f"{how}{number}", s3.client()

    def put(path: str, data: bytes) -> None:
        client.put_object(Bucket=BUCKET, Key=f"lake/{name}/{path}", Body=data)

    root = folder / "s3" / "data" / BUCKET / "lake" / name
    table = ExpiredTable(root, settings.partitions, settings.expired, put)
    table.make()
    run = folder / name
    run.mkdir()
    out, events = run / "out.json", run / "events"
    module = "ingest_platform_tests.benchmarks.contenders.vacuum"
    child = spawn(
        [
            sys.executable,
            "-m",
            module,
            how,
            f"s3a://{BUCKET}/lake/{table.root.name}",
            str(events),
            str(out),
        ],
        name=TITLES[how],
        log=run / "output.log",
        env={
            **os.environ,
            **s3.environment(),
            "SPARK_LOCAL_DIRS": str(run / "spill"),
        },
    )
    if child.popen.wait():
        raise click.ClickException(f"{TITLES[how]} failed:\n{child.log_tail()}")
    left = table.files()
    if len(left) != settings.partitions or any("old" in name for name in left):
        raise click.ClickException(f"{TITLES[how]} left {len(left)} files")
    found = json.loads(out.read_text())
    found["tasks"] = sum(
        line.startswith('{"Event":"SparkListenerTaskEnd"')
        for file in events.iterdir()
        if file.is_file()
        for line in file.open(encoding="utf-8")
    )
    found["log"] = [line for line in child.log_tail().splitlines() if "maintain.vacuum" in line]
    shutil.rmtree(table.root)
    return found


def goals(figures: Figures) -> list[Target]:
    """Those that the figures can be held against."""
    ratio, tasks = (
        figures.get(PART, "plain/platform", "seconds"),
        figures.get(PART, "platform", "tasks"),
    )
    found = []
    if ratio:
        found.append(Target("speed-up over plain VACUUM", ratio.median, 5, "at least", "ratio"))
    if tasks:
        found.append(Target("tasks", tasks.median, 200, "at most", "tasks"))
    return found


def draw(figures: Figures, path: Path) -> None:
    """One bar each, on a logarithmic scale."""
    mpl.use("Agg")
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for number, name in enumerate(("seconds", "tasks", "requests"), start=1):
        axes = figure.add_subplot(1, 3, number)
        values = [f.median if (f := figures.get(PART, how, name)) else 0 for how in TITLES]
        bars = axes.bar(list(TITLES.values()), values, color=["#b5651d", "#1f6feb"])
        axes.bar_label(bars, fmt="{:,.0f}")
        axes.set(title=name, yscale="log")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


@click.command(help=__doc__)
@click.option("--expired", default=10_000, show_default=True, help="Files to delete.")
@click.option("--partitions", default=1_000, show_default=True, help="Each has one live file.")
@click.option("--repeats", default=1, show_default=True, help="Rounds.")
@click.option("--name", default="vacuum", show_default=True, help="Of the results.")
def main(name: str, **options: int) -> None:
    """Measure, and print what came out."""
    settings = Settings(**options)
    figures = Figures()
    console = Console(width=None if sys.stdout.isatty() else 160)
    with (
        tempfile.TemporaryDirectory(prefix="bench-vacuum-", ignore_cleanup_errors=True) as made,
        start_s3(Path(made) / "s3", env=os.environ, bucket=BUCKET) as s3,
    ):
        for number in range(settings.repeats):
            order = list(TITLES) if number % 2 else list(reversed(TITLES))
            for how in order:
                console.print(f"round {number + 1}: {TITLES[how]}")
                found = measure(how, number, settings, s3, Path(made))
                console.print(found)
                for figure, unit in UNITS.items():
                    figures.add(PART, how, figure, float(found[figure]), unit)
    for figure in UNITS:
        figures.ratio(PART, "plain", "platform", figure)
    path = write_results(
        name,
        settings=asdict(settings),
        notes=NOTES,
        figures=figures,
        targets=goals(figures),
        series={},
    )
    draw(figures, path.with_suffix(".png"))
    print_outcome(console, figures, TITLES, goals(figures), path)


if __name__ == "__main__":
    main()
