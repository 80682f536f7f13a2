"""Can the next session go on where the last one ended? Asked of checkpoint and table, no JVM."""

from __future__ import annotations

from collections.abc import Mapping

from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.table_history import newest_account
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.errors import CheckpointDamagedError, IngestError
from ingest_platform.maintain.preflight.run import Resumption
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import Positions
from ingest_platform.spec import StorageEnvironment, StreamSpec
from ingest_platform.stream.checkpoint import Checkpoint


def disagreement(
    checkpoint: Checkpoint, account: Ledger | RepairRecord | None, stream: str
) -> CheckpointDamagedError | None:
    """Why a driver would refuse this checkpoint, by the table's newest account; None if it fits."""
    try:
        checkpoint.verify()
        if isinstance(account, RepairRecord):
            checkpoint.begins_at(account.start)
        else:
            checkpoint.agree_with(account, stream)
    except CheckpointDamagedError as error:
        return error
    return None


def resumption(spec: StreamSpec, environ: Mapping[str, str]) -> Resumption:
    """Where the stream would go on, or why it would not; nothing if its storage cannot be read."""
    storage = StorageEnvironment.from_env(environ)
    try:
        objects = object_store(spec.root, storage)
        checkpoint = Checkpoint(objects, f"streams/{spec.name}/checkpoint")
        account = newest_account(TableLog(spec.table.path, storage), spec.name)
        if account and isinstance(spec.source.starting_offsets, dict) and not checkpoint.lineage():
            return Resumption()  # a person says where a new session starts; the driver checks that
        problem = disagreement(checkpoint, account, spec.name)
        if isinstance(account, RepairRecord):
            return Resumption(account.start, problem)
        finished = -1 if problem else checkpoint.finished()
        return Resumption(_ends(checkpoint, finished) if finished >= 0 else None, problem)
    except CheckpointDamagedError as error:
        return Resumption(None, error)
    except IngestError:
        return Resumption()  # said by the checks of storage and table


def _ends(checkpoint: Checkpoint, batch: int) -> Positions:
    ends: dict[str, dict[int, int]] = {}
    for part in checkpoint.ranges(batch):
        ends.setdefault(part.topic, {})[part.partition] = part.until
    return Positions(ends)
