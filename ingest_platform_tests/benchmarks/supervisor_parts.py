"""What the supervisor costs: a tick, many tables' ticks, a day's events, a month's decisions."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg

from ingest_platform_tests.benchmarks.figures import Figures, percentile
from ingest_platform_tests.benchmarks.supervised_tables import Table
from ingest_platform_tests.unit.supervise.test_histories import EVENTS
from ingest_platform_tests.unit.supervise.world import TICK, World

TICKS, FLEET, EVENTS_OF_A_DAY, REPLAY = "tick", "fleet", "events", "replay"
_DAY_SECONDS = 86_400


def one_table(
    figures: Figures, folder: Path, instance: dg.DagsterInstance, *, commits: int, ticks: int
) -> dict[str, Any]:
    """Ticks of a table with many commits and a topic of 100 partitions; a commit before each."""
    table = Table("clicks", folder, commits=commits, partitions=100)
    seconds = []
    for number in range(ticks):
        table.commit()
        seconds.append(_timed(table, instance, number))
    first, rest = seconds[0], [1000 * s for s in seconds[1:]]
    figures.add(TICKS, "sensor", "first tick", 1000 * first, "ms")
    for name, percent in (("p50", 50), ("p95", 95), ("max", 100)):
        figures.add(TICKS, "sensor", name, percentile(rest, percent), "ms")
    return {"milliseconds": [round(s, 2) for s in rest]}


def _timed(table: Table, instance: dg.DagsterInstance, number: int) -> float:
    """A look, without what the driver does before it; every eighth comes with a report."""
    table.beat(after=15.0 if number % 8 else 600.0)
    begun = time.perf_counter()
    table.look(instance)
    return time.perf_counter() - begun


def fleet(
    figures: Figures, folder: Path, instance: dg.DagsterInstance, *, tables: int, rounds: int
) -> dict[str, Any]:
    """One tick of each of many tables, in one thread: what 30 s must hold on one core."""
    made = [Table(f"t{n}", folder, commits=200, partitions=12) for n in range(tables)]
    walls, cpus = [], []
    for _ in range(rounds):
        for table in made:
            table.commit()
            table.beat()
        wall, cpu = time.perf_counter(), time.process_time()
        for table in made:
            table.look(instance)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    for wall, cpu in zip(walls[1:], cpus[1:], strict=True):
        figures.add(FLEET, "sensor", "a round, wall", wall, "s")
        figures.add(FLEET, "sensor", "a round, CPU", cpu, "s")
    return {"wall": [round(s, 3) for s in walls], "cpu": [round(s, 3) for s in cpus]}


def events_of_a_day(
    figures: Figures, folder: Path, instance: dg.DagsterInstance, *, every: float
) -> dict[str, Any]:
    """What one table leaves in Dagster's event log in a day: commits, bad records, some lag."""
    table = Table("day", folder, commits=1, partitions=12)
    counted: Counter[str] = Counter()
    for number in range(int(_DAY_SECONDS / every)):
        seconds = number * every
        if number % 4 == 0:
            table.commit(quarantined=1)
        late = seconds % 14_400 < every
        found = table.tick(instance, every, oldest_unread_age=1000.0 if late else 2.0)
        counted.update(type(event).__name__ for event in found)
    for name, count in counted.items():
        figures.add(EVENTS_OF_A_DAY, "sensor", name, count, "events")
    figures.add(EVENTS_OF_A_DAY, "sensor", "all", counted.total(), "events")
    return dict(counted)


def replay(figures: Figures, *, days: int, seed: int) -> dict[str, Any]:
    """A month of ticks through the decision, with something happening every hour or so."""
    rng, world = random.Random(seed), World()
    happenings: list[Callable[[World], None]] = [EVENTS[name] for name in sorted(EVENTS)]
    ticks = int(days * _DAY_SECONDS / TICK.total_seconds())
    begun = time.perf_counter()
    for _ in range(ticks):
        if rng.random() < 1 / 240:
            rng.choice(happenings)(world)
        world.tick()
        del world.runs[:-20]
    seconds = time.perf_counter() - begun
    figures.add(REPLAY, "decision", f"{days} days", seconds, "s")
    figures.add(REPLAY, "decision", "one look and decision", 1e6 * seconds / ticks, "µs")
    kinds = Counter(type(decision).__name__ for decision in world.decisions)
    return {"ticks": ticks, "decisions": dict(kinds), "generations": world.generation}
