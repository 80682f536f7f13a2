"""Days of a table's life in fast motion: files only, planned by the platform's own planner.

Micro-batches add files at the rate of a busy web shop; every quarter of an hour the planner is
asked, and what it plans is carried out on the sizes. It tells how often Spark is needed, and how
many bytes are rewritten for each byte ingested, without writing one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from ingest_platform.maintain.compaction.plan import CompactionPlan, plan_compaction
from ingest_platform.model.data_file import DataFile, Partition
from ingest_platform.spec import CompactionSpec

Partitioning = Literal["hours", "days", "none"]

START: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Load:
    """What the stream writes.

    Attributes:
        partitioning: Of the table, by event time.
        trigger_seconds: Between batches.
        slow: Records per second at night.
        fast: Records per second by day.
        record_bytes: In Parquet.
        writers: Files per batch and partition.
        late: Share of records that belong to the hour before.
    """

    partitioning: Partitioning
    trigger_seconds: float = 15.0
    slow: float = 2000.0
    fast: float = 6000.0
    record_bytes: float = 40.0
    writers: int = 2
    late: float = 0.01

    def batch(self, at: datetime) -> Iterator[DataFile]:
        """The files of one batch."""
        day = (at - START) / timedelta(days=1)
        rate = self.slow + (self.fast - self.slow) * (1 - math.cos(2 * math.pi * day)) / 2
        size = rate * self.trigger_seconds * self.record_bytes
        shares: dict[Partition, float] = {}
        for time, share in ((at, 1 - self.late), (at - timedelta(hours=1), self.late)):
            partition = self._partition(time)
            shares[partition] = shares.get(partition, 0.0) + share
        for partition, share in shares.items():
            for _ in range(self.writers):
                file_bytes = int(size * share / self.writers) + 1000  # footer
                yield DataFile(partition, file_bytes, int(at.timestamp() * 1000))

    def _partition(self, at: datetime) -> Partition:
        match self.partitioning:
            case "hours":
                return (("hour", f"{at:%Y-%m-%d-%H}"),)
            case "days":
                return (("day", f"{at:%Y-%m-%d}"),)
            case "none":
                return ()


@dataclass
class Life:
    """What happened.

    Attributes:
        hours: Simulated.
        ingested: Bytes that the stream wrote.
        rewritten: Bytes that compaction read.
        looks: Times that the planner was asked.
        runs: Times that there was something to do, and so a Spark driver.
        commits: Of compaction.
        removed: Files that compaction took out, for vacuum to delete.
        files: Live files at the end of each hour.
    """

    hours: int
    ingested: int = 0
    rewritten: int = 0
    looks: int = 0
    runs: int = 0
    commits: int = 0
    removed: int = 0
    files: list[int] = field(default_factory=list[int])

    @property
    def amplification(self) -> float:
        """Bytes rewritten for each byte ingested."""
        return self.rewritten / self.ingested


def live(load: Load, rules: CompactionSpec, hours: int) -> Life:
    """Let the table live for so many hours."""
    life, files = Life(hours), list[DataFile]()
    at, end = START, START + timedelta(hours=hours)
    look = START + rules.every
    while at < end:
        added = list(load.batch(at))
        life.ingested += sum(file.bytes for file in added)
        files += added
        at += timedelta(seconds=load.trigger_seconds)
        if at >= look:
            plan = plan_compaction(files, rules, at)
            files = _carried_out(files, plan, rules, at)
            _book(life, plan)
            look += rules.every
        if (at - START) % timedelta(hours=1) < timedelta(seconds=load.trigger_seconds):
            life.files.append(len(files))
    return life


def _book(life: Life, plan: CompactionPlan) -> None:
    life.looks += 1
    life.runs += bool(plan.batches)
    life.commits += len(plan.batches)
    life.rewritten += sum(work.bytes for work in plan.work)
    life.removed += sum(work.files for work in plan.work)


def _carried_out(
    files: list[DataFile], plan: CompactionPlan, rules: CompactionSpec, at: datetime
) -> list[DataFile]:
    limits = {work.partition: work.below for work in plan.work}
    taken: dict[Partition, list[int]] = {}
    left = []
    for file in files:
        if file.bytes < limits.get(file.partition, 0):
            taken.setdefault(file.partition, []).append(file.bytes)
        else:
            left.append(file)
    made = int(at.timestamp() * 1000)
    for partition, sizes in taken.items():
        for size in _bins(sorted(sizes), rules.target_file_size):
            left.append(DataFile(partition, size, made))
    return left


def _bins(sizes: list[int], target: int) -> Iterator[int]:
    total = 0
    for size in sizes:
        if total and total + size > target:
            yield total
            total = 0
        total += size
    if total:
        yield total
