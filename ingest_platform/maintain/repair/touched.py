"""What a repair will change in table and quarantine, read by delta-rs: no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from ingest_platform.adapters.delta_tables import open_table
from ingest_platform.maintain.audit.coordinates import collect
from ingest_platform.maintain.audit.held import Held
from ingest_platform.maintain.repair.cut import Place
from ingest_platform.model.repair import Touched
from ingest_platform.spec.environment import StorageEnvironment

_LOWEST, _HIGHEST = "min._kafka_partition", "max._kafka_partition"
_LAST = "max._kafka_offset"


def table_touched(table: DeltaTable | None, kept: Mapping[Place, int], rows: int) -> Touched:
    """Files that may hold rows beyond the cut, by their statistics; `rows` is the ledgers' sum."""
    if table is None:
        return Touched()
    actions = pa.table(table.get_add_actions(flatten=True))
    files = sum(_reaches_beyond(action, kept) for action in actions.to_pylist()) if rows else 0
    return Touched(table.version(), files, rows)


def ends_in_data(path: str, storage: StorageEnvironment, version: int | None) -> dict[Place, int]:
    """Where each partition ends by the rows' own coordinates: for ledgers that have expired.

    What was rejected or skipped after the last row is read again, which does no harm: a repair
    also takes it out of the quarantine.
    """
    held = Held()
    collect(path, storage, held, version)
    return {place: int(runs.seen()[1][-1]) for place, runs in held.runs.items()}


def quarantine_touched(
    path: str, storage: StorageEnvironment, kept: Mapping[Place, int], topics: tuple[str, ...]
) -> Touched:
    """Rejected records beyond the cut, counted one by one: there are few."""
    table = open_table(path, storage)
    if table is None:
        return Touched()
    held = Held()
    collect(path, storage, held, table.version())
    rows = 0
    for place, runs in held.runs.items():
        starts, untils = runs.seen()
        if place[0] in topics:
            rows += int((untils - starts.clip(min=kept.get(place, 0))).clip(min=0).sum())
    return Touched(table.version(), 0, rows)


def _reaches_beyond(action: Mapping[str, Any], kept: Mapping[Place, int]) -> bool:
    low, high, last = action.get(_LOWEST), action.get(_HIGHEST), action.get(_LAST)
    if low is None or high is None or last is None:
        return True  # no statistics: it must be looked into
    ends = [end for (_, partition), end in kept.items() if low <= partition <= high]
    return not ends or last >= min(ends)
