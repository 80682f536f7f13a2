"""All checks of some streams: what can be asked at once is, and every finding has its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import psutil

from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.errors import IngestError
from ingest_platform.maintain.preflight.capacity import Machine, check_capacity, cores_of
from ingest_platform.maintain.preflight.executors import check_executors
from ingest_platform.maintain.preflight.findings import Finding, of_error
from ingest_platform.maintain.preflight.kafka import TopicFacts, check_topics, read_topics
from ingest_platform.maintain.preflight.kinds import Group
from ingest_platform.maintain.preflight.log_store import check_log_store
from ingest_platform.maintain.preflight.paths import check_paths, check_paths_apart
from ingest_platform.maintain.preflight.secrets import check_secrets
from ingest_platform.maintain.preflight.storage import check_storage
from ingest_platform.maintain.preflight.table import check_table
from ingest_platform.maintain.preflight.user_jars import check_user_jars
from ingest_platform.maintain.preflight.versions import check_machine
from ingest_platform.model.offsets import Positions
from ingest_platform.model.status import Status
from ingest_platform.spec import StorageEnvironment, StreamSpec

_PARALLEL = 8
_ORDER = {group: index for index, group in enumerate(Group)}


@dataclass(frozen=True)
class Resumption:
    """Where a stream would go on, as far as that is known, and why it would refuse to."""

    read: Positions | None = None
    problem: IngestError | None = None


@dataclass(frozen=True)
class Surroundings:
    """The world that the checks look at.

    Attributes:
        environ: Environment variables of the drivers.
        machine: Cores and memory.
        python: Major and minor version.
        now: This machine's clock.
        resume: Holds a stream's checkpoint against its table.
        kafka_timeout: Seconds that brokers have for an answer.
    """

    environ: Mapping[str, str]
    machine: Machine
    python: tuple[int, int]
    now: Callable[[], datetime]
    resume: Callable[[StreamSpec], Resumption]
    kafka_timeout: float = 10.0


def here(
    environ: Mapping[str, str],
    resume: Callable[[StreamSpec], Resumption],
    kafka_timeout: float = 10.0,
) -> Surroundings:
    """This process's machine and clock."""
    machine = Machine(os.cpu_count() or 1, psutil.virtual_memory().total)
    python = sys.version_info[:2]
    now = partial(datetime.now, UTC)
    return Surroundings(environ, machine, python, now, resume, kafka_timeout)


def run_checks(specs: Sequence[StreamSpec], world: Surroundings) -> list[Finding]:
    """Check machine, streams, and the streams together.

    Nothing is raised for what is found, and nothing is left behind: probe objects are removed.

    Args:
        specs: The streams that are to run at once.
        world: What to look at.

    Returns:
        Findings by group, then stream.
    """
    with ThreadPoolExecutor(_PARALLEL) as pool:
        machine = pool.submit(lambda: list(check_machine(world.environ, world.python)))
        streams = list(pool.map(lambda spec: _check_stream(spec, world), specs))
    found = [*machine.result(), *check_paths_apart(specs)]
    partitions: dict[str, int] = {}
    for spec, (findings, topics) in zip(specs, streams, strict=True):
        found += findings
        known = [facts for facts in topics if isinstance(facts, TopicFacts)]
        if len(known) == len(spec.source.all_topics):
            partitions[spec.name] = sum(len(facts.bounds) for facts in known)
    found += check_capacity(specs, partitions, world.machine)
    return sorted(found, key=lambda f: (_ORDER[f.group], f.stream or ""))


def _check_stream(
    spec: StreamSpec, world: Surroundings
) -> tuple[list[Finding], list[TopicFacts | IngestError]]:
    topics = read_topics(spec, world.environ, world.kafka_timeout)
    return list(_of_stream(spec, world, topics)), topics


def _of_stream(
    spec: StreamSpec, world: Surroundings, topics: list[TopicFacts | IngestError]
) -> Iterator[Finding]:
    yield from check_user_jars(spec, world.environ)
    yield from check_executors(spec, world.environ, world.python)
    cores, status = cores_of(spec.spark, world.machine), _status(spec, world.environ)
    resumption = world.resume(spec)
    if resumption.problem is not None:
        why = "a driver refuses to start: going on would lose or double records"
        yield of_error(Group.TABLE, resumption.problem, why, spec.name)
    read = resumption.read or _last_known(status)
    rate = status.input_rows_per_second if status else 0.0
    yield from check_topics(spec, topics, rate=rate, read=read, now=world.now(), cores=cores)
    yield from check_log_store(spec, world.environ)
    yield from check_storage(spec, world.environ, world.now)
    yield from check_table(spec, world.environ)
    yield from check_paths(spec)
    yield from check_secrets(spec, world.environ)


def _last_known(status: Status | None) -> Positions | None:
    return Positions.from_dict(status.offsets) if status else None


def _status(spec: StreamSpec, environ: Mapping[str, str]) -> Status | None:
    """The stream's last known position; storage that cannot be read is told by its own check."""
    try:
        objects = object_store(spec.root, StorageEnvironment.from_env(environ))
        return StatusStore(objects).read(spec.name)
    except IngestError:
        return None
