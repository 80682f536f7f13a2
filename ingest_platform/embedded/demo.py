"""A running demo: look at it, let it settle, prove that nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import httpx

from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.embedded.dagster_dev import DagsterDev, Materialization
from ingest_platform.embedded.demo_settings import Settings
from ingest_platform.embedded.disk import check_space
from ingest_platform.embedded.drivers import drain_all
from ingest_platform.embedded.process import ChildProcess
from ingest_platform.embedded.proof import Proof, prove
from ingest_platform.embedded.receipts import Receipts
from ingest_platform.embedded.services import Services
from ingest_platform.errors import IngestError, ServiceStartError
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import Status
from ingest_platform.spec import StorageEnvironment, StreamSpec

PRODUCER_SECONDS = 35.0
DAGSTER_SECONDS = 20.0

# A first batch of some 500,000 records takes a minute on two cores that others use too.
_STALLED_SECONDS = 180.0
_POLL_SECONDS = 0.5


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
        kafka, s3 = self.services.kafka.child, self.services.s3.child
        return (kafka, s3, self.dagster.child, self.producer)

    def look(self) -> Look:
        """Read the producer's receipts and the driver's status."""
        status: Status | None = None
        with suppress(IngestError):  # a busy S3 server; `check` tells whether it is gone
            status = self._statuses.read(self.spec.name)
        offsets = status.offsets.get(self.spec.source.all_topics[0], {}) if status else {}
        return Look(self.receipts().end, sum(offsets.values()), status)

    def receipts(self) -> Receipts:
        """What Kafka has acknowledged to the producer."""
        return Receipts.read(self.settings.receipts)

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

        Bounded: ends when nothing has moved for 180 s.

        Returns:
            What Dagster reported of the table since the demo started.
        """
        self.producer.stop(PRODUCER_SECONDS)
        caught_up = self._wait_until_caught_up(on_look)
        # A stream that is stuck will not be reported either: no use in waiting twice.
        deadline = time.monotonic() + (_STALLED_SECONDS if caught_up else 0)
        found = self.materializations()
        while not found and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            on_look(self.look())
            found = self.materializations()
        return found

    def materializations(self) -> Sequence[Materialization]:
        """What Dagster reported of the table since the demo started; empty if it does not say."""
        with suppress(httpx.HTTPError):
            return self.dagster.materializations(self.spec.name, self.started)
        return ()

    def prove(self) -> Proof:
        """End Dagster and the drivers, and hold what was ingested against what was produced.

        Raises:
            IngestError: Table or topic cannot be read.
        """
        self.dagster.stop(DAGSTER_SECONDS)
        drain_all(self.settings.folder)
        return prove(self.spec, self.receipts(), self.env)

    def _wait_until_caught_up(self, on_look: Callable[[Look], None]) -> bool:
        ingested, moved = -1, time.monotonic()
        while time.monotonic() - moved < _STALLED_SECONDS:
            look = self.look()
            on_look(look)
            if look.ingested >= look.produced:
                return True
            if look.status and look.status.state is StreamState.FAILED:
                return False  # only a person can help; the proof will name what is missing
            if look.ingested != ingested:
                ingested, moved = look.ingested, time.monotonic()
            time.sleep(_POLL_SECONDS)
        return False

    @cached_property
    def _statuses(self) -> StatusStore:
        return StatusStore(object_store(self.spec.root, StorageEnvironment.from_env(self.env)))
