"""The three programs that are compared: how each is started, and where it can be watched."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ingest_platform.embedded.process import ChildProcess
from ingest_platform_tests.benchmarks import programs
from ingest_platform_tests.benchmarks.batches import (
    BatchSource,
    CheckpointClock,
    ProgressFile,
    StatusReports,
)
from ingest_platform_tests.benchmarks.clicks import SCHEMA
from ingest_platform_tests.benchmarks.timeline import DeltaTimeline, FileTimeline, Timeline

DRIVER_MEMORY: Final = "2g"  # the platform's default; the plain script gets as much

_SCRIPTS: Final = Path(__file__).parent / "contenders"
_NAME: Final = "clicks"


@dataclass(frozen=True)
class Job:
    """What a contender is to do, and where.

    Attributes:
        bootstrap_servers: Of the broker.
        topic: Read from its beginning.
        records: How many the topic holds at the start.
        folder: Empty, on a local disk; everything of this run goes there.
        trigger_seconds: Time between micro-batches; 0 for none.
    """

    bootstrap_servers: str
    topic: str
    records: int
    folder: Path
    trigger_seconds: float = 0.0


class Contender(Protocol):
    """One program under measurement."""

    @property
    def key(self) -> str:
        """Of its figures."""
        ...

    @property
    def title(self) -> str:
        """What a reader is shown."""
        ...

    def start(self, job: Job) -> ChildProcess:
        """Start the process."""
        ...

    def timeline(self, job: Job) -> Timeline:
        """What becomes readable when."""
        ...

    def batch_sources(self, job: Job) -> Sequence[BatchSource]:
        """Clocks of its micro-batches."""
        ...


@dataclass(frozen=True)
class PlainScript:
    """(a) The plain script, on the locked jars.

    Attributes:
        max_offsets_per_trigger: Records a batch.
        snapshot_partitions: 150 suit a cluster and a log of millions of files. On two cores they
            cost more than everything else, so there is also (a2), with what suits here.
    """

    max_offsets_per_trigger: int
    snapshot_partitions: int = 150
    key: str = "a"
    title: str = "plain PySpark script"

    def start(self, job: Job) -> ChildProcess:
        """Start the script under this Python."""
        script = [
            str(_SCRIPTS / "plain_script.py"),
            *("--bootstrap-servers", job.bootstrap_servers, "--topic", job.topic),
            *("--table", str(_table(job)), "--schema", SCHEMA),
            *("--driver-memory", DRIVER_MEMORY, "--progress", str(_progress(job))),
            *("--max-offsets-per-trigger", str(self.max_offsets_per_trigger)),
            *("--snapshot-partitions", str(self.snapshot_partitions)),
            *("--trigger-seconds", str(job.trigger_seconds)),
        ]
        return programs.start_spark_script(self.title, script, job.folder)

    def timeline(self, job: Job) -> Timeline:
        """Its Delta log."""
        return DeltaTimeline(_table(job))

    def batch_sources(self, job: Job) -> Sequence[BatchSource]:
        """Checkpoint and progress reports."""
        checkpoint = _table(job) / "_checkpoints" / "clicks"
        return (CheckpointClock(checkpoint), ProgressFile(_progress(job)))


@dataclass(frozen=True)
class Platform:
    """(b) This platform's driver: ledger, quarantine and coordinates on, settings by default.

    Attributes:
        max_offsets_per_trigger: Records a batch.
    """

    max_offsets_per_trigger: int
    key: str = "b"
    title: str = "ingest_platform"

    def start(self, job: Job) -> ChildProcess:
        """Write the spec and start the driver on it."""
        return programs.start_driver(self.title, self._attributes(job), job.folder)

    def timeline(self, job: Job) -> Timeline:
        """Its Delta log, with the ledgers."""
        return DeltaTimeline(_table(job))

    def batch_sources(self, job: Job) -> Sequence[BatchSource]:
        """Checkpoint and status document."""
        state = job.folder / "_ingest" / "streams" / _NAME
        return (CheckpointClock(state / "checkpoint"), StatusReports(state / "status.json"))

    def _attributes(self, job: Job) -> dict[str, object]:
        source = {
            "topic": job.topic,
            "bootstrap_servers": job.bootstrap_servers,
            "max_offsets_per_trigger": self.max_offsets_per_trigger,
        }
        return {
            "name": _NAME,
            "source": source,
            "decode": {"schema": SCHEMA},
            "table": {
                "path": str(_table(job)),
                "partition_by": ["hours(event_time)"],
                "event_time": "event_time",
            },
            "trigger": f"{job.trigger_seconds:g} seconds",
            "spark": {"driver_memory": DRIVER_MEMORY},
        }


@dataclass(frozen=True)
class Floor:
    """(c) One Python process: confluent-kafka, Arrow JSON, Parquet.

    Attributes:
        batch: Records a file.
    """

    batch: int
    key: str = "c"
    title: str = "Python + Arrow, no table"

    def start(self, job: Job) -> ChildProcess:
        """Start the script under this Python."""
        command = [
            *(sys.executable, str(_SCRIPTS / "floor.py")),
            *("--bootstrap-servers", job.bootstrap_servers, "--topic", job.topic),
            *("--folder", str(_table(job)), "--progress", str(_progress(job))),
            *("--records", str(job.records), "--batch", str(self.batch)),
        ]
        return programs.start(self.title, command, job.folder)

    def timeline(self, job: Job) -> Timeline:
        """Its files."""
        return FileTimeline(_progress(job))

    def batch_sources(self, job: Job) -> Sequence[BatchSource]:
        """It has no micro-batches."""
        return ()


def _table(job: Job) -> Path:
    return job.folder / "table"


def _progress(job: Job) -> Path:
    return job.folder / "progress.jsonl"
