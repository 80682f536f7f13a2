"""A stream under the platform's own supervision, in this process, on a real Dagster instance.

The sensors' ticks come every few seconds, and the runs that they ask for are executed in turn.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.stores import Stores
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.components.alert_tick import AlertTick
from ingest_platform.components.kafka_delta_table import stream_definitions
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.components.supervisor import Tick
from ingest_platform.spec.alerts import AlertsSpec
from ingest_platform_tests.dagster_home import make_instance
from ingest_platform_tests.deployed_stream import DeployedStream

TICK_SECONDS = 5.0


@dataclass(eq=False)
class Supervision(threading.Thread):
    """Looks every few seconds; `asked` holds the jobs that were asked for, `said` the reasons.

    With `alerts`, their sensor looks as well, right after the stream's.
    """

    stream: DeployedStream
    instance: dg.DagsterInstance
    every: float = TICK_SECONDS
    alerts: AlertsSpec | None = None
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(name="supervision")
        self.done = threading.Event()
        self.cursor: str | None = None
        self.alert_cursor: str | None = None
        self.failed: BaseException | None = None
        spec = self.stream.spec
        resources = {
            "s3": S3Resource(),
            "launcher": LauncherResource(log_dir=self.stream.environ["INGEST_LOG_DIR"]),
        }
        self.defs = dg.Definitions.merge(
            stream_definitions(spec, self.stream.file), dg.Definitions(resources=resources)
        )
        self.log = TableLog(spec.table.path, self.stream.storage)

    def run(self) -> None:
        try:
            while not self.done.wait(self.every):
                self._tick()
                if self.alerts:
                    self._tell(self.alerts)
        except BaseException as error:
            self.failed = error
            raise

    def _tick(self) -> None:
        spec = self.stream.spec
        stores = Stores.of(spec, self.stream.storage)
        tick = Tick(spec, stores, LocalLauncher(), lambda: self.log, datetime.now(UTC))
        result = tick.result(self.instance, self.cursor)
        self.cursor = result.cursor
        if result.skip_reason:
            self.said.append(result.skip_reason.skip_message or "")
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        for request in result.run_requests or []:
            self.asked.append(str(request.job_name))
            self.defs.resolve_job_def(str(request.job_name)).execute_in_process(
                instance=self.instance, tags=dict(request.tags), raise_on_error=False
            )

    def _tell(self, alerts: AlertsSpec) -> None:
        streams, storage = [self.stream.spec], self.stream.storage
        tick = AlertTick(alerts, streams, storage, os.environ, lambda: datetime.now(UTC))
        graph = self.defs.get_repository_def().asset_graph
        self.alert_cursor = tick.result(self.instance, graph, self.alert_cursor).cursor


@contextmanager
def supervised(
    stream: DeployedStream,
    folder: Path,
    tick: float = TICK_SECONDS,
    alerts: AlertsSpec | None = None,
) -> Iterator[Supervision]:
    """Supervise until the block ends; then no driver is left."""
    before = dict(os.environ)
    os.environ.update(stream.environ)  # what a run's worker would have
    try:
        with make_instance(folder) as instance:
            made = Supervision(stream, instance, tick, alerts)
            made.start()
            try:
                yield made
            finally:
                made.done.set()
                made.join()
    finally:
        os.environ.clear()
        os.environ.update(before)
        status = stream.status()
        if status:
            LocalLauncher().kill(status.runs_at)
