"""The real Dagster daemon with one stream, on stand-in drivers: to be hung, killed or robbed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import psutil

from ingest_platform.adapters.stores import Stores
from ingest_platform.embedded.process import ChildProcess, spawn
from ingest_platform.model.status import Status
from ingest_platform.spec import StorageEnvironment, load_spec
from ingest_platform_tests import stand_in_driver
from ingest_platform_tests.dagster_home import REPOSITORY, make_home

_SPEC = """\
type: ingest_platform.KafkaDeltaTable
attributes:
  name: clicks
  source:
    topic: clicks
  decode:
    schema: "id BIGINT"
  table:
    path: {lake}/clicks
"""
_DEFINITIONS = """\
import os
from pathlib import Path
import dagster as dg
from ingest_platform.components.kafka_delta_table import stream_definitions
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.spec import load_spec

path = Path({path!r})
driver = list({driver!r})
defs = dg.Definitions.merge(
    stream_definitions(load_spec(path, os.environ), path),
    dg.Definitions(resources={{
        "s3": S3Resource(), "launcher": LauncherResource(command=driver, log_dir={logs!r}),
    }}),
)
"""


@dataclass
class Daemon:
    """One deployment; `child` is the present daemon's process."""

    folder: Path
    child: ChildProcess | None = None

    @property
    def home(self) -> Path:
        """DAGSTER_HOME."""
        return self.folder / "home"

    @property
    def spec_path(self) -> Path:
        return self.folder / "defs.yaml"

    @property
    def stores(self) -> Stores:
        return Stores.of(load_spec(self.spec_path, os.environ), StorageEnvironment())

    def prepare(self) -> None:
        make_home(self.home)
        self.spec_path.write_text(_SPEC.format(lake=self.folder / "lake"))
        (self.folder / "deployed.py").write_text(
            _DEFINITIONS.format(
                path=str(self.spec_path),
                driver=stand_in_driver.COMMAND,
                logs=str(self.folder / "logs"),
            )
        )

    def start(self) -> None:
        """Start the daemon; its code server and run workers are of the same process group."""
        self.child = spawn(
            [
                *(str(Path(sys.executable).parent / "dagster-daemon"), "run"),
                *("-f", str(self.folder / "deployed.py"), "-d", str(REPOSITORY)),
            ],
            name="Dagster daemon",
            log=self.folder / "daemon.log",
            env={**os.environ, "DAGSTER_HOME": str(self.home)},
        )

    def signal(self, number: int) -> None:
        """To the daemon and all that it has started, but for drivers."""
        assert self.child
        os.killpg(self.child.pid, number)

    def kill(self) -> None:
        """SIGKILL, as from the kernel."""
        self.signal(signal.SIGKILL)
        assert self.child
        self.child.popen.wait(20)

    def lose_database(self) -> None:
        """All that Dagster knows: runs, events, cursors."""
        for path in self.home.iterdir():
            if path.name != "dagster.yaml":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def runs(self) -> int:
        """How many runs there have been."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            return instance.get_runs_count()

    def ticks(self) -> list[str]:
        """What the sensor's last ticks said."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            return [
                tick.skip_reason or tick.status.value
                for state in instance.all_instigator_state()
                for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id)
            ]

    def status(self) -> Status | None:
        return self.stores.status.read("clicks")

    def generation(self) -> int:
        lease = self.stores.lease.current()
        return lease.generation if lease else 0

    def drivers(self) -> list[int]:
        """Pids of this stream's drivers that live."""
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            line = process.info["cmdline"] or []
            if stand_in_driver.COMMAND[-1] in line and str(self.spec_path) in line:
                found.append(process.pid)
        return found

    def told(self) -> str:
        """For a test that fails."""
        assert self.child
        return f"{self.status()}\n{self.child.log_tail()}"


@contextmanager
def daemon(folder: Path) -> Iterator[Daemon]:
    """A deployment whose daemon runs; nothing of it is left afterwards."""
    made = Daemon(folder)
    made.prepare()
    made.start()
    try:
        yield made
    finally:
        if made.child and made.child.is_running():
            made.signal(signal.SIGCONT)
            made.kill()
        for pid in made.drivers():
            os.kill(pid, signal.SIGKILL)
