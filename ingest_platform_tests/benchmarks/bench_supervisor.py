"""What supervising costs, and how long a stream stands still.

    python -m ingest_platform_tests.benchmarks.bench_supervisor [--parts ...] [--runs N]

Writes `results/supervisor.json` and a plot beside it; asserts nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import click
from rich.console import Console

from ingest_platform_tests.benchmarks import supervisor_outages as outages
from ingest_platform_tests.benchmarks import supervisor_parts as parts
from ingest_platform_tests.benchmarks.figures import Figures
from ingest_platform_tests.benchmarks.results import FOLDER, write_results
from ingest_platform_tests.benchmarks.supervisor_plot import draw
from ingest_platform_tests.benchmarks.tables import print_outcome
from ingest_platform_tests.benchmarks.targets import Target
from ingest_platform_tests.dagster_home import make_instance

CHEAP: Final = (parts.TICKS, parts.FLEET, parts.EVENTS_OF_A_DAY, parts.REPLAY)
PARTS: Final = (*CHEAP, outages.TURNOVER, outages.RECOVERY)

NOTES = (
    "A tick is all that the sensor does: documents, Dagster's runs on SQLite, decision, and, when "
    "they are due, report and checks. Table and state are on a local disk. Every eighth tick comes "
    "with a report and a look at all of the table's files; a commit precedes each.",
    "fleet: one tick of each table in turn in one thread, after a first round that opens the logs.",
    "events: materializations and check evaluations of one day, by ticks every settings.day_every "
    "seconds, with a bad record in every fourth, and the lag beyond its limit six times; a "
    "turnover's run is counted by a test.",
    "replay: simulated drivers that die, hang, stall, age and lose their broker, about one event "
    "an hour; the time is of the world's simulation and the decisions together.",
    "turnover: real drivers, trigger 1 s, records all the time; the longest time between two "
    "commits around it. recovery: SIGKILL of driver and JVM to the first new commit, with the "
    "sensor's own 15 s interval; the time is a hit at random within that interval.",
)

_GOALS: Final[tuple[tuple[str, str, str, str, Literal["at least", "at most"], float], ...]] = (
    ("tick, p95 after the first", parts.TICKS, "sensor", "p95", "at most", 150.0),
    ("tick, max after the first", parts.TICKS, "sensor", "max", "at most", 150.0),
    ("200 tables' ticks on one core", parts.FLEET, "sensor", "a round, CPU", "at most", 30.0),
    ("events of a table and day", parts.EVENTS_OF_A_DAY, "sensor", "all", "at most", 300.0),
    ("planned gap beyond the trigger", outages.TURNOVER, "driver", "gap, p95", "at most", 11.0),
    (
        "recovery after SIGKILL, p95",
        outages.RECOVERY,
        "driver",
        "until the next commit, p95",
        "at most",
        60.0,
    ),
)


@dataclass(frozen=True)
class Settings:
    """Sizes of the run."""

    commits: int
    ticks: int
    tables: int
    day_every: float
    days: int
    runs: int
    seed: int = 1


def measure(part: str, settings: Settings, figures: Figures, folder: Path) -> dict[str, Any]:
    """Run one part; what its plot is drawn from."""
    folder.mkdir()
    if part == parts.REPLAY:
        return parts.replay(figures, days=settings.days, seed=settings.seed)
    if part == outages.TURNOVER:
        return outages.turnovers(figures, folder, settings.runs)
    if part == outages.RECOVERY:
        return outages.recoveries(figures, folder, settings.runs)
    with make_instance(folder / "dagster") as instance:
        if part == parts.TICKS:
            sizes = {"commits": settings.commits, "ticks": settings.ticks}
            return parts.one_table(figures, folder, instance, **sizes)
        if part == parts.FLEET:
            return parts.fleet(figures, folder, instance, tables=settings.tables, rounds=4)
        return parts.events_of_a_day(figures, folder, instance, every=settings.day_every)


def goals(figures: Figures) -> list[Target]:
    """The goals with the medians measured for them."""
    found = [(goal, figures.get(*goal[1:4])) for goal in _GOALS]
    return [Target(g[0], f.median, g[5], g[4], f.unit) for g, f in found if f]


@click.command(help=__doc__)
@click.option("--parts", "wanted", default=",".join(CHEAP), show_default=True, help="Or `all`.")
@click.option("--commits", default=10_000, show_default=True, help="Of the one table.")
@click.option("--ticks", default=200, show_default=True, help="Of the one table.")
@click.option("--tables", default=200, show_default=True, help="Of the round.")
@click.option("--day-every", default=60.0, show_default=True, help="Seconds between a day's ticks.")
@click.option("--days", default=30, show_default=True, help="Of the replay.")
@click.option("--runs", default=20, show_default=True, help="Turnovers, and recoveries.")
@click.option("--name", default="supervisor", show_default=True, help="Of the results.")
def main(wanted: str, name: str, **options: Any) -> None:
    """Measure, and print what came out."""
    console, settings = Console(), Settings(**options)
    chosen = PARTS if wanted == "all" else tuple(wanted.split(","))
    figures, series = Figures(), dict[str, Any]()
    folder = Path(tempfile.mkdtemp(prefix="bench-supervisor-"))
    try:
        for part in chosen:
            console.print(f"{part} ...")
            series[part] = measure(part, settings, figures, folder / part)
            write_results(
                name,
                settings=asdict(settings),
                notes=NOTES,
                figures=figures,
                targets=goals(figures),
                series=series,
            )
            draw(series, FOLDER / f"{name}.png")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_outcome(console, figures, {}, goals(figures), FOLDER / f"{name}.json")


if __name__ == "__main__":
    main()
