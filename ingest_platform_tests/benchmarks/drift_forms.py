"""The two forms of a table's upkeep that are compared: all in one driver, and drivers apart."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Protocol

from ingest_platform.embedded.process import ChildProcess
from ingest_platform_tests.benchmarks import programs
from ingest_platform_tests.benchmarks.batches import BatchSource, CheckpointClock
from ingest_platform_tests.benchmarks.contenders.one_driver import COMPACT_EVERY, VACUUM_EVERY

SCHEMA: Final = "id BIGINT, event_time TIMESTAMP, page STRING"
DRIVER_MEMORY: Final = "1g"  # what leaks shows sooner; both get as much

# In fast motion: some minutes instead of six hours.
RETENTION: Final = "interval 5 minutes"

_MODULES: Final = "ingest_platform_tests.benchmarks.contenders"


@dataclass(frozen=True)
class Life:
    """What a form is to do, and where: read a topic in batches of so many records.

    Attributes:
        folder: Of its processes; of the lake too, if that is not on S3.
        bucket: `s3a://` URL of a lake on S3, with what its clients need in `environ`.
        disk: Where the S3 server of this machine keeps that bucket.
    """

    bootstrap_servers: str
    topic: str
    records_a_batch: int
    folder: Path
    bucket: str | None = None
    disk: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def lake(self) -> Path:
        """Table and state as the disk has them, wherever drivers see them."""
        return self.disk or self.folder

    @property
    def table(self) -> Path:
        """The table's folder on the disk."""
        return self.lake / "table"


class Form(Protocol):
    """One form: a stream's process, and what is done to the table meanwhile."""

    @property
    def key(self) -> str:
        """Of its figures."""
        ...

    @property
    def title(self) -> str:
        """What a reader is shown."""
        ...

    def start(self, life: Life) -> ChildProcess:
        """Start the streaming driver."""
        ...

    def clock(self, life: Life) -> BatchSource:
        """Clock of its batches."""
        ...

    def upkeep(self, life: Life) -> Upkeep:
        """Does what is due at a batch; ends with the block."""
        ...


class Upkeep(Protocol):
    """Compaction and vacuum beside the stream."""

    def reached(self, batch: int) -> None:
        """Told of the newest batch, every few seconds."""
        ...

    def __enter__(self) -> Upkeep: ...
    def __exit__(self, *_: object) -> None: ...


@dataclass(frozen=True)
class OneDriver:
    """A plain script whose own thread does the upkeep."""

    key: str = "one_driver"
    title: str = "plain script, all in one driver"

    def start(self, life: Life) -> ChildProcess:
        """Start the script under this Python."""
        script = [
            *("-m", f"{_MODULES}.one_driver"),
            *("--bootstrap-servers", life.bootstrap_servers, "--topic", life.topic),
            *("--table", str(life.table), "--schema", SCHEMA),
            *("--driver-memory", DRIVER_MEMORY, "--retention", RETENTION),
            *("--progress", str(life.folder / "progress.jsonl")),
            *("--max-offsets-per-trigger", str(life.records_a_batch)),
        ]
        return programs.start_spark_script(self.title, script, life.folder)

    def clock(self, life: Life) -> BatchSource:
        """Its checkpoint is in the table's folder."""
        return CheckpointClock(life.table / "_checkpoints" / "clicks")

    def upkeep(self, life: Life) -> Upkeep:
        """Nothing: the driver does it."""
        del life
        return _Nothing()


@dataclass(frozen=True)
class DriversApart:
    """This platform: a streaming driver, and maintenance in a process of its own."""

    key: str = "platform"
    title: str = "ingest_platform, drivers apart"

    def start(self, life: Life) -> ChildProcess:
        """Write the spec and start the driver on it."""
        attributes = self._attributes(life)
        return programs.start_driver(self.title, attributes, life.folder, life.environ)

    def clock(self, life: Life) -> BatchSource:
        """Its checkpoint is beside the table."""
        return CheckpointClock(life.lake / "_ingest" / "streams" / "clicks" / "checkpoint")

    def upkeep(self, life: Life) -> Upkeep:
        """A process that is told when."""
        return _Maintenance(life)

    @staticmethod
    def _attributes(life: Life) -> dict[str, object]:
        return {
            "name": "clicks",
            "source": {
                "topic": life.topic,
                "bootstrap_servers": life.bootstrap_servers,
                "max_offsets_per_trigger": life.records_a_batch,
            },
            "decode": {"schema": SCHEMA},
            "table": {
                "path": f"{life.bucket or life.lake}/table",
                "partition_by": ["hours(event_time)"],
                "event_time": "event_time",
                "properties": {
                    "delta.deletedFileRetentionDuration": RETENTION,
                    "delta.logRetentionDuration": "interval 4 days",
                },
            },
            "trigger": "0 seconds",
            "spark": {"driver_memory": DRIVER_MEMORY},
            "maintenance": {"driver_memory": "1g", "compaction": {"settle": "20 seconds"}},
        }


class _Nothing:
    def reached(self, batch: int) -> None:
        del batch

    def __enter__(self) -> Upkeep:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Maintenance:
    """Sends a line to the maintenance process for each run that is due."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._done = {"compact": 0, "vacuum": 0}
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[str] | None = None

    def reached(self, batch: int) -> None:
        for action, every in (("compact", COMPACT_EVERY), ("vacuum", VACUUM_EVERY)):
            if batch // every > self._done[action]:
                self._done[action] = batch // every
                assert self._process is not None
                assert self._process.stdin is not None
                self._process.stdin.write(f"{action}\n")
                self._process.stdin.flush()

    def __enter__(self) -> Upkeep:
        folder = self._life.folder
        self._log = (folder / "maintenance.log").open("a")
        command = [sys.executable, "-m", f"{_MODULES}.drift_maintenance"]
        self._process = subprocess.Popen(
            [*command, str(folder / "defs.yaml"), str(folder / "logs" / "maintenance")],
            cwd=programs.PROJECT,
            env={**os.environ, **self._life.environ},
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # as a run starts it; it ends with its standard input
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            if self._process.stdin:
                self._process.stdin.close()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()  # its JVM ends with its standard input
                self._process.wait()
        if self._log:
            self._log.close()


@contextmanager
def running(form: Form, life: Life) -> Iterator[tuple[ChildProcess, Upkeep]]:
    """The form's processes, for the time of the block."""
    life.folder.mkdir(parents=True)
    child = form.start(life)
    try:
        with form.upkeep(life) as upkeep:
            yield child, upkeep
    finally:
        child.stop()
