"""What maintenance costs for a busy web shop: write amplification, and S3 requests per hour.

    python -m ingest_platform_tests.benchmarks.bench_maintenance_cost [--hours H] [--files N]

Two parts. `life`: two days of files, planned by the platform's planner and carried out on their
sizes, for tables partitioned by hour, by day and not at all. `requests`: compaction and vacuum of
an hour's files on a real S3 server behind a counting proxy, from which the requests of an hour
follow. Writes `results/maintenance-cost.json` and a plot beside it; asserts nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click
import matplotlib as mpl
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from matplotlib.figure import Figure
from pyspark.sql import SparkSession
from rich.console import Console

from ingest_platform.adapters.delta_tables import storage_options
from ingest_platform.drivers.compact_table import compact_table
from ingest_platform.drivers.vacuum_table import VacuumOptions, vacuum_table
from ingest_platform.embedded.s3 import start_s3
from ingest_platform.spark.session import open_session
from ingest_platform.spec import CompactionSpec, SparkSpec, StorageEnvironment, StreamSpec
from ingest_platform_tests.benchmarks.counting_proxy import CountingProxy
from ingest_platform_tests.benchmarks.figures import Figures
from ingest_platform_tests.benchmarks.results import write_results
from ingest_platform_tests.benchmarks.table_life import Life, Load, Partitioning, live
from ingest_platform_tests.benchmarks.tables import print_outcome
from ingest_platform_tests.benchmarks.targets import Target

LIFE: Final = "life"
REQUESTS: Final = "requests"
PARTITIONINGS: Final[tuple[Partitioning, ...]] = ("hours", "days", "none")
TITLES: Final = {
    **{
        name: f"partitioned by {name}" if name != "none" else "unpartitioned"
        for name in PARTITIONINGS
    },
    "platform": "ingest_platform",
}
BUCKET: Final = "bench"

# S3 standard, us-east-1, dollars per 1,000 requests; deletions are free.
WRITE_PRICE: Final = 0.005
READ_PRICE: Final = 0.0004

NOTES = (
    "life: batches of 15 s, 2,000 records/s at night to 6,000 by day, 40 bytes a record in "
    "Parquet, two files per batch and partition, 1 % of the records an hour late; defaults. "
    "amplification: bytes that compaction reads by bytes that the stream writes.",
    "requests: all of delta-rs, S3A and boto3, counted by a proxy. An hour's files are settled "
    "files of two partitions, two added by each commit; the log has a checkpoint every 10 commits.",
    "per hour: 4 looks for compaction, the compaction of the hour's files in one run, one look for "
    "vacuum and one vacuum of the same number of files; a full listing once a day is shared by 24.",
    "What the stream itself sends is not in it.",
)


@dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    hours: int
    files: int


class Lake:
    """A table behind a counting proxy."""

    def __init__(self, proxy: CountingProxy, environ: dict[str, str]) -> None:
        self.storage = StorageEnvironment.from_env({**environ, "AWS_ENDPOINT_URL": proxy.endpoint})
        self._direct = storage_options(StorageEnvironment.from_env(environ))
        self.spec = StreamSpec.model_validate(
            {
                "name": "bench",
                "source": {"topic": "none"},
                "decode": {"schema": "id BIGINT"},
                "table": {"path": f"s3a://{BUCKET}/lake/bench"},
                "maintenance": {"compaction": {"settle": "0s"}},
            }
        )

    def fill(self, files: int) -> None:
        """Commits of two files each, with a checkpoint every 10, beside the proxy."""
        path = self.spec.table.path
        for number in range(files // 2):
            ids = pa.array(range(number, number + 100))
            rows = pa.table({"id": ids, "hour": ["12", "13"] * 50})
            write_deltalake(
                path, rows, mode="append", partition_by=["hour"], storage_options=self._direct
            )
            if number % 10 == 9:
                DeltaTable(path, storage_options=self._direct).create_checkpoint()


def measure_requests(
    settings: Settings, folder: Path, figures: Figures
) -> dict[str, dict[str, int]]:
    """Requests of each step; books them, and those of an hour."""
    with start_s3(folder / "s3", env=os.environ, bucket=BUCKET) as s3:
        environ = s3.environment()
        with CountingProxy(s3.endpoint) as proxy:
            lake = Lake(proxy, environ)
            lake.fill(settings.files)
            spark_spec = SparkSpec(master="local[2]", driver_memory="2g")
            with open_session(
                spark_spec, lake.storage, app_name="cost", environ=os.environ, on_s3=True
            ) as spark:
                steps = _steps(lake, spark, proxy)
    for step, requests in steps.items():
        for method, count in requests.items():
            figures.add(REQUESTS, "platform", f"{step}: {method}", count, "requests")
        figures.add(REQUESTS, "platform", f"{step}: all", sum(requests.values()), "requests")
    hour = _hour(steps)
    figures.add(REQUESTS, "platform", "per hour: all", sum(hour.values()), "requests")
    writes = hour["PUT"] + hour["LIST"]
    reads = hour["GET"] + hour["HEAD"]
    dollars = (writes * WRITE_PRICE + reads * READ_PRICE) / 1000
    figures.add(REQUESTS, "platform", "per month", dollars * 24 * 30, "dollars")
    return steps


def _steps(lake: Lake, spark: SparkSession, proxy: CountingProxy) -> dict[str, dict[str, int]]:
    now = datetime.now(UTC)
    later = now + timedelta(minutes=30)
    unsafe = VacuumOptions(keep=timedelta(0), override="benchmark")

    def compact(*, dry_run: bool) -> object:
        return compact_table(lake.spec, lake.storage, lambda: spark, now, dry_run=dry_run)

    def vacuum(options: VacuumOptions, at: datetime = later) -> object:
        return vacuum_table(lake.spec, lake.storage, lambda: spark, at, options)

    first = VacuumOptions(full=True)
    return {
        "look for compaction": proxy.counted(lambda: compact(dry_run=True)),
        "full vacuum that finds nothing": proxy.counted(lambda: vacuum(first)),
        "compaction": proxy.counted(lambda: compact(dry_run=False)),
        "look for vacuum": proxy.counted(lambda: vacuum(VacuumOptions())),
        "vacuum": proxy.counted(lambda: vacuum(unsafe)),
    }


def _hour(steps: dict[str, dict[str, int]]) -> dict[str, float]:
    often = {
        "look for compaction": 4.0,
        "compaction": 1.0,
        "look for vacuum": 1.0,
        "vacuum": 1.0,
        "full vacuum that finds nothing": 1 / 24,
    }
    methods = next(iter(steps.values()))
    return {m: sum(steps[step][m] * times for step, times in often.items()) for m in methods}


def measure_life(settings: Settings, figures: Figures) -> dict[str, Life]:
    """Let tables live, and book what it cost."""
    found = {}
    for partitioning in PARTITIONINGS:
        life = live(Load(partitioning), CompactionSpec(), settings.hours)
        found[partitioning] = life
        figures.add(LIFE, partitioning, "amplification", life.amplification, "ratio")
        figures.add(LIFE, partitioning, "runs with Spark per hour", life.runs / life.hours, "runs")
        figures.add(LIFE, partitioning, "commits per hour", life.commits / life.hours, "commits")
        figures.add(
            LIFE, partitioning, "files removed per hour", life.removed / life.hours, "files"
        )
        figures.add(LIFE, partitioning, "live files at the end", life.files[-1], "files")
        figures.add(LIFE, partitioning, "live files at most", max(life.files), "files")
    return found


def draw(lives: dict[str, Life], steps: dict[str, dict[str, int]], path: Path) -> None:
    """Live files over the hours; requests of each step by method."""
    mpl.use("Agg")
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    axes = figure.add_subplot(1, 2, 1)
    for partitioning, life in lives.items():
        label = f"{TITLES[partitioning]}: {life.amplification:.2f} bytes rewritten per byte"
        axes.plot(range(len(life.files)), life.files, label=label)
    axes.set(title="Live files", xlabel="hours", ylabel="files")
    axes.legend(frameon=False)
    axes = figure.add_subplot(1, 2, 2)
    left = [0.0] * len(steps)
    for method in next(iter(steps.values()), {}):
        counts = [float(requests[method]) for requests in steps.values()]
        axes.barh(list(steps), counts, left=left, label=method)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    axes.set(title="S3 requests of each step", xlabel="requests")
    axes.legend(frameon=False)
    for each in figure.axes:
        each.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


@click.command(help=__doc__)
@click.option("--hours", default=48, show_default=True, help="Of a table's life.")
@click.option("--files", default=480, show_default=True, help="Of the hour that is measured.")
@click.option("--name", default="maintenance-cost", show_default=True, help="Of the results.")
def main(name: str, **options: int) -> None:
    """Measure, and print what came out."""
    settings, figures = Settings(**options), Figures()
    console = Console(width=None if sys.stdout.isatty() else 160)
    lives = measure_life(settings, figures)
    with tempfile.TemporaryDirectory(prefix="bench-cost-", ignore_cleanup_errors=True) as made:
        steps = measure_requests(settings, Path(made), figures)
    worst = max(life.amplification for life in lives.values())
    targets = [Target("bytes rewritten per byte ingested", worst, 2.0, "at most", "ratio")]
    path = write_results(
        name,
        settings=asdict(settings),
        notes=NOTES,
        figures=figures,
        targets=targets,
        series={"files": {key: life.files for key, life in lives.items()}, "requests": steps},
    )
    draw(lives, steps, path.with_suffix(".png"))
    print_outcome(console, figures, TITLES, targets, path)


if __name__ == "__main__":
    main()
