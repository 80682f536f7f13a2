"""The whole platform on this machine: Kafka, S3, a producer, Dagster, and the drivers it launches.

What holds about its end: Ctrl-C, SIGTERM and SIGHUP end everything in order, and so does the end of
any of the servers. If the demo itself is killed, the broker and the S3 server die with it (the
kernel sees to that), and the watchdog ends the rest within a second. If the watchdog is killed too,
the next start ends what is left.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import httpx
from rich.console import Console

from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.embedded import dagster_dev, leftovers
from ingest_platform.embedded.dagster_dev import DagsterDev, Materialization, start_dagster
from ingest_platform.embedded.disk import check_space
from ingest_platform.embedded.drivers import drain_all
from ingest_platform.embedded.folder import claim
from ingest_platform.embedded.ports import choose_ports, is_free
from ingest_platform.embedded.process import ChildProcess, spawn
from ingest_platform.embedded.proof import Proof, prove
from ingest_platform.embedded.receipts import Receipts
from ingest_platform.embedded.services import Services, start_services, without_foreign
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform.embedded.watchdog import Watchdog
from ingest_platform.errors import IngestError, ServiceStartError
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import Status
from ingest_platform.spec import StorageEnvironment, StreamSpec

PARTITIONS = 25
# Bounds what a demo that was left running overnight takes: 3 GB, some hours of clicks.
TOPIC_CONFIG = {"retention.bytes": str(128 << 20), "segment.bytes": str(32 << 20)}

_PRODUCER_SECONDS = 35.0
_DAGSTER_SECONDS = 20.0
_STALLED_SECONDS = 90.0
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Settings:
    """What a demo is to be.

    Attributes:
        folder: Absolute; holds all data, logs and settings.
        project: The checkout.
        specs: The deployment's streams; the first one gets the producer's clicks.
        rate: Records per second.
        ui_port: Of Dagster's web server; 3000 or a free one if not given.
        kafka_port: A free one if not given.
        s3_port: A free one if not given.
    """

    folder: Path
    project: Path
    specs: tuple[StreamSpec, ...]
    rate: float
    ui_port: int | None = None
    kafka_port: int | None = None
    s3_port: int | None = None


@dataclass(frozen=True)
class Look:
    """One look at a running demo.

    Attributes:
        produced: Records that the topic got, of this run and all before it.
        ingested: Of those, how many are in table or quarantine, or skipped.
        status: The driver's last status document; None before the first.
    """

    produced: int
    ingested: int
    status: Status | None


@dataclass(frozen=True)
class Demo:
    """A running demo.

    Attributes:
        env: What its processes were started with.
        started: Epoch seconds.
    """

    settings: Settings
    env: Mapping[str, str]
    services: Services
    dagster: DagsterDev
    producer: ChildProcess
    started: float

    @property
    def spec(self) -> StreamSpec:
        """The stream that reads the clicks."""
        return self.settings.specs[0]

    @property
    def children(self) -> tuple[ChildProcess, ...]:
        """The servers and the producer."""
        return (self.services.kafka.child, self.services.s3.child, self.dagster.child, self.producer)

    def look(self) -> Look:
        """Read the producer's receipts and the driver's status."""
        status = self._status.read(self.spec.name)
        offsets = status.offsets.get(self.spec.source.all_topics[0], {}) if status else {}
        return Look(self.receipts().end, sum(offsets.values()), status)

    def receipts(self) -> Receipts:
        """What Kafka has acknowledged to the producer."""
        return Receipts.read(receipts_file(self.settings.folder))

    def check(self) -> None:
        """Look after the children and the disk.

        Raises:
            ServiceStartError: One of them has ended.
            DiskFullError: Too little space is left.
        """
        check_space(self.settings.folder)
        for child in self.children:
            if not child.is_running():
                raise ServiceStartError(
                    f"the {child.name} ended with exit code {child.popen.returncode}; the end of "
                    f"its log:\n{child.log_tail()}",
                    where=str(child.log),
                    remedy="start the demo again: it goes on with the same data",
                )

    def settle(self, on_look: Callable[[Look], None]) -> Sequence[Materialization]:
        """Stop producing, and wait until all is ingested and Dagster has reported it once.

        Bounded: ends when nothing has moved for 90 s.

        Returns:
            What Dagster reported of the table since the demo started.
        """
        self.producer.stop(_PRODUCER_SECONDS)
        self._wait_until_caught_up(on_look)
        deadline = time.monotonic() + _STALLED_SECONDS
        found: Sequence[Materialization] = ()
        while not found and time.monotonic() < deadline:
            on_look(self.look())
            with suppress(httpx.HTTPError):
                found = self.dagster.materializations(self.spec.name, self.started)
            time.sleep(_POLL_SECONDS)
        return found

    def prove(self) -> Proof:
        """End Dagster and the drivers, and hold what was ingested against what was produced.

        Raises:
            IngestError: Table or topic cannot be read.
        """
        self.dagster.stop(_DAGSTER_SECONDS)
        drain_all(self.settings.folder)
        return prove(self.spec, self.receipts(), self.env)

    def _wait_until_caught_up(self, on_look: Callable[[Look], None]) -> None:
        ingested, moved = -1, time.monotonic()
        while time.monotonic() - moved < _STALLED_SECONDS:
            look = self.look()
            on_look(look)
            if look.ingested >= look.produced:
                return
            if look.status and look.status.state is StreamState.FAILED:
                return  # only a person can help; the proof will name what is missing
            if look.ingested != ingested:
                ingested, moved = look.ingested, time.monotonic()
            time.sleep(_POLL_SECONDS)

    @cached_property
    def _status(self) -> StatusStore:
        return StatusStore(object_store(self.spec.root, StorageEnvironment.from_env(self.env)))


def receipts_file(folder: Path) -> Path:
    """Where the producer leaves its counts."""
    return folder / "producer.json"


@contextmanager
def running_demo(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    say: Callable[[str], None],
    console: Console | None = None,
) -> Iterator[Demo]:
    """Start a demo; leaving the block ends it in order, and everything that it started.

    Args:
        settings: What it is to be.
        environ: Java, jar cache and PATH are taken from it; logins and endpoints are not.
        say: Told what happens, a few words at a time.
        console: Shows progress while jars are downloaded.

    Raises:
        ServiceStartError: A part did not start, or another demo uses the folder.
        IngestError: Java, jars, a port or space is missing.
    """
    folder = settings.folder
    with ExitStack() as stack:
        stack.callback(claim_demo(folder))
        check_space(folder)
        if leftovers.end_all(folder):
            say("ended what an earlier demo had left behind")
        stack.enter_context(Watchdog(folder))
        port = _ui_port(settings)
        base = without_foreign(environ)
        say("starting Kafka and S3")
        services = start_services(
            folder,
            env=base,
            kafka_port=settings.kafka_port,
            s3_port=settings.s3_port,
            console=console,
        )
        stack.callback(services.stop)
        env = demo_environment(base, services, folder)
        _make_topics(services, settings.specs)
        stack.callback(lambda: (say("draining the drivers"), drain_all(folder)))
        say("starting the producer and Dagster")
        started = time.time()
        producer = _start_producer(settings, env)
        stack.callback(lambda: producer.stop(_PRODUCER_SECONDS))
        home = folder / "dagster"
        dagster = start_dagster(home, project=settings.project, env=env, port=port)
        stack.callback(lambda: (say("ending Dagster"), dagster.stop(_DAGSTER_SECONDS)))
        stack.callback(lambda: (say("ending the producer"), producer.stop(_PRODUCER_SECONDS)))
        yield Demo(settings, env, services, dagster, producer, started)


def claim_demo(folder: Path) -> Callable[[], None]:
    """Take the demo's folder; what is returned gives it back.

    Raises:
        ServiceStartError: A demo is running in it.
    """
    return claim(folder, service="demo", owner_pid=_own_pid()).close
