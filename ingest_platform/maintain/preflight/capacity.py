"""Are there cores and memory for what the streams will do at once?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ingest_platform.maintain.preflight.findings import Finding, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.spec import SparkSpec, StreamSpec

_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
_HEAP_SHARE = 0.75  # the rest: off-heap buffers, Python, the operating system's page cache
_SHUFFLE = ("spark.sql.shuffle.partitions", "spark.default.parallelism")
_MANY_TASKS = 4  # times what cores or partitions can use
_BIG_BATCH = 5_000_000
_BIG_HEAP = 4 * 1024**3


@dataclass(frozen=True)
class Machine:
    """What this machine has: cores, and memory in bytes."""

    cores: int
    memory: int


def check_capacity(
    specs: Sequence[StreamSpec], partitions: Mapping[str, int], machine: Machine
) -> Iterator[Finding]:
    """Judge all streams together, since drivers with a local master share the machine.

    Args:
        specs: The streams that will run at once.
        partitions: Kafka partitions by stream, where they are known.
        machine: This machine.
    """
    yield from _cores(specs, partitions, machine)
    yield from _memory(specs, machine)
    for spec in specs:
        yield from _batch(spec)


def cores_of(spark: SparkSpec, machine: Machine) -> int:
    """Cores that a stream's tasks may use at once."""
    local = _LOCAL.fullmatch(spark.master.replace(" ", ""))
    if local is None:
        return spark.executors * spark.executor_cores
    if local[1] == "*":
        return machine.cores
    return int(local[1] or 1)


def _cores(
    specs: Sequence[StreamSpec], partitions: Mapping[str, int], machine: Machine
) -> Iterator[Finding]:
    """A core per partition of each stream, and one per executor for the sink."""
    for spec in specs:
        count = partitions.get(spec.name)
        if count is None:
            continue
        local = spec.spark.master.startswith("local")
        needed = count + (1 if local else spec.spark.executors)
        cores = cores_of(spec.spark, machine)
        yield _compared(spec.name, cores, needed, f"{count} partitions")
        yield from _shuffle(spec, count, cores)
    local = [spec for spec in specs if spec.spark.master.startswith("local")]
    wanted = sum(cores_of(spec.spark, machine) for spec in local)
    if len(local) > 1 and wanted > machine.cores:
        yield Finding(
            Level.WARNING,
            Group.CAPACITY,
            Kind.CORES_SHARED,
            f"{len(local)} local drivers may use {wanted} cores, the machine has {machine.cores}",
            "batches of one stream delay those of the others",
            "give each a share, such as spark.master: local[2], or move some elsewhere",
        )


def _compared(stream: str, cores: int, needed: int, for_what: str) -> Finding:
    if cores >= needed:
        return ok(Group.CAPACITY, f"{cores} cores for {for_what}", stream)
    return Finding(
        Level.WARNING,
        Group.CAPACITY,
        Kind.CORES,
        f"{cores} cores for {for_what}; reading all at once takes {needed}",
        "partitions are read in turn: fine while batches stay shorter than the trigger",
        "watch the batch time in `ingest-platform status`; add cores if it exceeds the trigger",
        stream,
    )


def _shuffle(spec: StreamSpec, partitions: int, cores: int) -> Iterator[Finding]:
    """A setting of the user's: Spark's usual 200 makes as many tasks of the smallest batch."""
    for key in _SHUFFLE:
        tasks = spec.spark.conf.get(key, "")
        if not tasks.isdecimal():
            continue
        many = int(tasks) > _MANY_TASKS * max(partitions, cores)
        if many or int(tasks) < min(partitions, cores):
            yield Finding(
                Level.WARNING,
                Group.CAPACITY,
                Kind.SHUFFLE_PARTITIONS,
                f"{key} is {tasks}, for {partitions} Kafka partitions on {cores} cores",
                "every shuffle runs that many tasks, most of them for a few rows"
                if many
                else "cores stay idle behind every shuffle",
                f"remove it from spark.conf, or set it to {max(partitions, cores)}",
                spec.name,
            )


def _memory(specs: Sequence[StreamSpec], machine: Machine) -> Iterator[Finding]:
    heaps = sum(memory_bytes(spec.spark.driver_memory) for spec in specs)
    sizes = f"{heaps / 1e9:.1f} GB of heap for {len(specs)} drivers"
    have = f"the machine has {machine.memory / 1e9:.1f} GB"
    if heaps > machine.memory * _HEAP_SHARE:
        yield Finding(
            Level.ERROR if heaps > machine.memory else Level.WARNING,
            Group.CAPACITY,
            Kind.MEMORY,
            f"{sizes}, {have}",
            "the kernel will end a driver when their heaps fill",
            "lower spark.driver_memory, or run some drivers elsewhere",
        )
    elif specs:
        yield ok(Group.CAPACITY, f"{sizes}, {have}")


def _batch(spec: StreamSpec) -> Iterator[Finding]:
    limit, heap = spec.source.max_offsets_per_trigger, spec.spark.driver_memory
    local = spec.spark.master.startswith("local")
    if local and limit > _BIG_BATCH and memory_bytes(heap) < _BIG_HEAP:
        yield Finding(
            Level.WARNING,
            Group.CAPACITY,
            Kind.BATCH_MEMORY,
            f"a batch may have {limit:,} records, with a heap of {heap}",
            "after an outage full batches run for minutes and may exceed the heap",
            "lower source.max_offsets_per_trigger or raise spark.driver_memory",
            spec.name,
        )
    if spec.trigger >= spec.freshness.warn:
        yield Finding(
            Level.WARNING,
            Group.CAPACITY,
            Kind.TRIGGER,
            f"the trigger ({spec.trigger}) is not shorter than freshness.warn "
            f"({spec.freshness.warn})",
            "the table is late by design: the warning will never end",
            "shorten the trigger or widen freshness",
            spec.name,
        )


def memory_bytes(text: str) -> int:
    """Bytes of a memory setting such as `2g` or `512m`."""
    return int(text[:-1]) * (1024**3 if text.endswith("g") else 1024**2)
