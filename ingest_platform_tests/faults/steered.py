"""A deployed stream as jobs and command line steer it, and what a test waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.stores import Stores
from ingest_platform.model.status import RunsAt, Status
from ingest_platform.steer.reach import Reach
from ingest_platform_tests.deployed_stream import DeployedStream

DEADLINE_SECONDS = 120.0


@dataclass
class Launching(LocalLauncher):
    """The launcher, and what it has launched."""

    launched: list[RunsAt] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def launch(self, launch: Launch) -> RunsAt:
        self.launched.append(super().launch(launch))
        return self.launched[-1]

    def living(self) -> list[RunsAt]:
        return [r for r in self.launched if self.alive(r)]


@contextmanager
def steering(stream: DeployedStream) -> Iterator[Reach]:
    """The stream within reach; afterwards none of its drivers is left."""
    launcher = Launching()
    logs = Path(stream.environ["INGEST_LOG_DIR"]) / stream.spec.name
    try:
        yield Reach(
            stores=Stores.of(stream.spec, stream.storage),
            launcher=launcher,
            launch=Launch(stream.file, stream.spec.name, logs, stream.environ),
            say=lambda _: None,
            now=lambda: datetime.now(UTC),
            clock=time.monotonic,
            sleep=time.sleep,
        )
    finally:
        for runs_at in launcher.launched:
            launcher.kill(runs_at)


def launcher_of(reach: Reach) -> Launching:
    """The launcher of a stream that is steered."""
    assert isinstance(reach.launcher, Launching)
    return reach.launcher


def eventually(
    what: Callable[[], bool], seconds: float = DEADLINE_SECONDS, *, tell: Callable[[], object]
) -> None:
    """Poll until `what` holds; else fail with what `tell` says."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, tell()
        time.sleep(0.1)


def committed(stream: DeployedStream, generation: int) -> Status | None:
    """The status of this generation, once it has committed a batch."""
    status = stream.status()
    found = status and status.generation == generation and status.last_batch
    return status if found else None
