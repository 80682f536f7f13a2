"""Tables for the supervisor to look at: real logs, state and Dagster instance, no Spark."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
from deltalake import DeltaTable

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import this_process
from ingest_platform.adapters.stores import Stores
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.components.supervisor import Tick
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange, OffsetRanges
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport, Status
from ingest_platform.spec import StorageEnvironment, StreamSpec

_WIDTH = 10  # records of each partition in a batch
_TRIGGER = timedelta(seconds=15)
_SCHEMA = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
}


class Table:
    """One table under supervision, over simulated time; its driver is this very process."""

    def __init__(self, name: str, folder: Path, *, commits: int, partitions: int) -> None:
        self.spec = StreamSpec.model_validate(
            {
                "name": name,
                "source": {"topic": "clicks"},
                "decode": {"schema": "id BIGINT"},
                "table": {"path": str(folder / name)},
                "supervision": {"max_age": 0},  # a day passes without a turnover
            }
        )
        self.stores = Stores.of(self.spec, StorageEnvironment())
        self.log = TableLog(self.spec.table.path, StorageEnvironment())
        self.partitions, self.version = partitions, -1
        self.now = datetime.now(UTC) - commits * _TRIGGER
        self.cursor: str | None = None
        self._begin()
        for _ in range(commits):
            self.now += _TRIGGER
            self.commit()
        DeltaTable(self.spec.table.path).create_checkpoint()  # as drivers do, beside their batches
        self.status = self._status()

    def commit(self, quarantined: int = 0) -> None:
        """A batch of two files, as the driver commits it."""
        self.version += 1
        batch = self.version - 1
        read = self.partitions * _WIDTH
        ledger = Ledger(
            self.spec.name,
            "bench",
            batch,
            OffsetRanges(
                tuple(
                    OffsetRange("clicks", p, batch * _WIDTH, (batch + 1) * _WIDTH)
                    for p in range(self.partitions)
                )
            ),
            read=read,
            written=read - quarantined,
            quarantined=quarantined,
        )
        millis = int(self.now.timestamp() * 1000)
        info = {
            "timestamp": millis,
            "operation": "WRITE",
            "operationParameters": {},
            "operationMetrics": {"numFiles": "2", "numOutputBytes": "2000"},
            "userMetadata": ledger.to_user_metadata(),
        }
        self._write([{"commitInfo": info}, *(_file(millis) for _ in range(2))])

    def tick(self, instance: dg.DagsterInstance, after: float = 15.0, **status: Any) -> list[Any]:
        """Beat, look, and the events of it."""
        self.beat(after, **status)
        return self.look(instance)

    def beat(self, after: float = 15.0, **status: Any) -> None:
        """Time passes, and the driver writes its status."""
        self.now += timedelta(seconds=after)
        at = self.now.isoformat()
        last = replace(self.status.recent[-1], id=self.version, finished_at=at)
        self.status = replace(
            self.status,
            updated_at=at,
            last_batch=last,
            recent=(*self.status.recent[1:], last),
            **status,
        )
        self.stores.status.write(self.status)

    def look(self, instance: dg.DagsterInstance) -> list[Any]:
        """The sensor's tick alone."""
        tick = Tick(self.spec, self.stores, LocalLauncher(), lambda: self.log, self.now)
        result = tick.result(instance, self.cursor)
        self.cursor = result.cursor
        if result.run_requests:
            raise RuntimeError(f"the supervisor acts on a healthy stream: {result.run_requests}")
        return list(result.asset_events)

    def _begin(self) -> None:
        folder = Path(self.spec.table.path, "_delta_log")
        folder.mkdir(parents=True)
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(_SCHEMA),
            "partitionColumns": [],
            "configuration": {},
        }
        self._folder, self.version = folder, 0
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        self._write([{"protocol": protocol}, {"metaData": metadata}])

    def _write(self, actions: list[dict[str, Any]]) -> None:
        text = "\n".join(json.dumps(action) for action in actions)
        (self._folder / f"{self.version:020d}.json").write_text(text)

    def _status(self) -> Status:
        lease = self.stores.lease.take("bench:1", "stream", self.now)
        batches = tuple(
            BatchReport(id=n, finished_at=self.now.isoformat(), rows=1000, seconds=1.0 + n % 3)
            for n in range(60)
        )
        end = self.version * _WIDTH
        return Status(
            stream=self.spec.name,
            session="bench",
            generation=lease.generation,
            state=StreamState.RUNNING,
            started_at=(self.now - timedelta(minutes=5)).isoformat(),
            runs_at=this_process(),
            last_batch=batches[-1],
            recent=batches,
            totals={"rows": 60_000, "batches": 60},
            offsets={"clicks": {str(p): end for p in range(self.partitions)}},
            behind={f"clicks-{p}": 3 for p in range(self.partitions)},
            oldest_unread_age=2.0,
        )


def _file(millis: int) -> dict[str, Any]:
    return {
        "add": {
            "path": f"part-{uuid.uuid4()}.parquet",
            "partitionValues": {},
            "size": 1000,
            "modificationTime": millis,
            "dataChange": True,
            "stats": '{"numRecords":500}',
        }
    }
