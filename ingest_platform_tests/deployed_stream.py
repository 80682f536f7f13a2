"""A stream as a user has it: a spec in a file, an environment, drivers, and what they leave."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ingest_platform.adapters.delta_tables import options_for
from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.drivers.diagnostics import Diagnostics
from ingest_platform.drivers.stream import Options, StreamDriver
from ingest_platform.embedded.process import ChildProcess, spawn
from ingest_platform.maintain.audit.report import AuditReport
from ingest_platform.maintain.audit.run import AuditTarget, examine
from ingest_platform.maintain.topic_bounds import topic_bounds
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.status import Status
from ingest_platform.spark.conf import S3_CHECKPOINTS
from ingest_platform.spec import StorageEnvironment, StreamSpec, load_spec
from ingest_platform.spec.files import COMPONENT_TYPE
from ingest_platform_tests.topic_records import Place

DRIVER = "ingest_platform.drivers.stream"

_PLACE = ["_kafka_topic", "_kafka_partition", "_kafka_offset"]


class SharedSessionDriver(StreamDriver):
    """The driver, in a session that is there already: starting one takes longer than most tests."""

    def __init__(self, spark: SparkSession, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._spark = spark

    @contextmanager
    def _session(self, diagnostics: Diagnostics) -> Iterator[SparkSession]:
        conf = S3_CHECKPOINTS if self._spec.root.startswith("s3a://") else {}
        for key, value in conf.items():
            self._spark.conf.set(key, value)
        try:
            yield self._spark
        finally:
            for key in conf:
                self._spark.conf.unset(key)


def spec_document(
    name: str, topic: str, schema: str, table: str, attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """What a `defs.yaml` holds: the least that a stream needs, with `attributes` over it."""
    least = {
        "name": name,
        "source": {"topic": topic},
        "decode": {"schema": schema},
        "table": {"path": table},
        "spark": {"driver_memory": "1g"},
    }
    return {"type": COMPONENT_TYPE, "attributes": _merged(least, attributes)}


def _merged(attributes: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    sections = {
        name: {**attributes[name], **value} if isinstance(attributes.get(name), dict) else value
        for name, value in changes.items()
    }
    return {**attributes, **sections}


@dataclass(frozen=True)
class DeployedStream:
    """One stream.

    Attributes:
        file: The `defs.yaml`.
        environ: What a driver process gets as its environment.
    """

    file: Path
    environ: Mapping[str, str]

    @property
    def spec(self) -> StreamSpec:
        """The spec as it is in the file now."""
        return load_spec(self.file, self.environ)

    @property
    def storage(self) -> StorageEnvironment:
        """How to reach S3."""
        return StorageEnvironment.from_env(self.environ)

    @property
    def objects(self) -> ObjectStore:
        """The stream's state."""
        return object_store(self.spec.root, self.storage)

    @property
    def checkpoint(self) -> str:
        """Key of the checkpoint's folder among `objects`."""
        return f"streams/{self.spec.name}/checkpoint"

    def edit(self, **attributes: Any) -> None:
        """Replace attributes of the spec, in its sections field by field."""
        document = yaml.safe_load(self.file.read_text())
        document["attributes"] = _merged(document["attributes"], attributes)
        self.file.write_text(yaml.safe_dump(document))

    def drain(self, spark: SparkSession, reached: Callable[[str], None] = lambda _: None) -> None:
        """Run the driver here until the topic is read; its errors are the driver's own.

        `reached` is told each phase of a batch as it ends.
        """
        options = Options(available_now=True, log_dir=self.file.parent / "logs", reached=reached)
        SharedSessionDriver(spark, self.spec, self.environ, options).run()

    def start(self, *arguments: str, module: str = DRIVER) -> ChildProcess:
        """Run the driver as a process of its own; its log is beside the spec."""
        return spawn(
            [sys.executable, "-m", module, str(self.file), *arguments],
            name=f"driver of {self.file}",
            log=self.file.parent / "driver.log",
            env=self.environ,
        )

    def status(self) -> Status | None:
        """The status document."""
        return StatusStore(self.objects).read(self.spec.name)

    def ledgers(self) -> list[Ledger]:
        """The ledgers of the table's commits, oldest first."""
        commits = TableLog(self.spec.table.path, self.storage).commits(after=-1)
        return [c.ledger for c in commits if c.ledger]

    def delta(self, path: str | None = None) -> DeltaTable:
        """The table, or the one at `path`, as delta-rs reads it."""
        path = path or self.spec.table.path
        return DeltaTable(path, storage_options=options_for(path, self.storage))

    def rows(self) -> list[dict[str, Any]]:
        """The table's rows, in the order of their coordinates."""
        return _in_order(self.delta().to_pyarrow_table())

    def rejected(self) -> list[dict[str, Any]]:
        """The quarantine's rows, in the order of their coordinates."""
        return _in_order(self.delta(self.spec.table.quarantine).to_pyarrow_table())

    def held(self) -> Counter[Place]:
        """How often each record is in table or quarantine."""
        return Counter(tuple(row[c] for c in _PLACE) for row in (*self.rows(), *self.rejected()))

    def audit(self) -> AuditReport:
        """The platform's own audit, with the data and the topic."""
        spec = self.spec
        return examine(
            AuditTarget(spec.table.path, spec.table.quarantine, from_earliest=True),
            self.storage,
            datetime.now(UTC),
            data=True,
            brokers=lambda: topic_bounds(spec.source, self.environ),
        ).report

    def assert_holds(self, places: list[Place]) -> None:
        """Each of these records is in table or quarantine exactly once, and nothing else is."""
        held, wanted = self.held(), Counter(places)
        assert held == wanted, f"too often: {held - wanted}; missing: {wanted - held}"
        report = self.audit()
        assert report.clean, report.findings


def _in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: tuple(row[c] for c in _PLACE if c in row))
