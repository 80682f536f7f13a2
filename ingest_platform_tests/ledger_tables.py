"""Small real Delta tables with ledgers, written by delta-rs as a stream's driver would."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange, OffsetRanges

TOPIC = "t"
Range = tuple[int, int, int]  # partition, start, until

_NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


def ledger(
    *ranges: Range,
    batch: int = 0,
    session: str = "a",
    lost: int = 0,
    topic: str = TOPIC,
    **counts: int,
) -> Ledger:
    """A ledger of some ranges; `lost` records make it not balance."""
    width = sum(until - start for _, start, until in ranges)
    read = width - counts.get("gaps", 0)
    uncounted = counts.get("quarantined", 0) + counts.get("skipped", 0)
    return Ledger(
        stream="clicks",
        session=session,
        batch=batch,
        offsets=OffsetRanges(tuple(OffsetRange(topic, *r) for r in sorted(ranges))),
        read=read,
        written=read - uncounted - lost,
        max_event_time=_NOW.isoformat(),
        **counts,
    )


def rows_of(
    *ranges: Range, without: Sequence[tuple[int, int]] = (), topic: str = TOPIC
) -> pa.Table:
    """One row per offset, with the coordinates and a payload."""
    pairs = [(p, o) for p, a, b in ranges for o in range(a, b) if (p, o) not in without]
    return pa.table(
        {
            "id": [f"{p}-{o}" for p, o in pairs],
            "_kafka_topic": pa.array([topic] * len(pairs), pa.string()),
            "_kafka_partition": pa.array([p for p, _ in pairs], pa.int32()),
            "_kafka_offset": pa.array([o for _, o in pairs], pa.int64()),
            "_kafka_timestamp": pa.array([_NOW] * len(pairs), pa.timestamp("us", "UTC")),
        }
    )


def quarantine_rows(pairs: Sequence[tuple[int, int]]) -> pa.Table:
    """Rejected records, given as `(partition, offset)`, in the quarantine's shape."""
    n = len(pairs)
    coordinates = rows_of(*((p, o, o + 1) for p, o in pairs)).drop_columns(["id"])
    rest = pa.table(
        {
            "key": pa.array([None] * n, pa.binary()),
            "value": pa.array([b"{"] * n, pa.binary()),
            "reason": pa.array(["malformed"] * n),
            "detail": pa.array([""] * n),
            "batch": pa.array([0] * n, pa.int64()),
            "session": pa.array(["a"] * n),
            "quarantined_at": pa.array([_NOW] * n, pa.timestamp("us", "UTC")),
        }
    )
    return pa.table({**_columns(coordinates), **_columns(rest)})


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def append(
    path: str, rows: pa.Table, entry: Ledger | None, options: dict[str, str] | None = None
) -> None:
    """Append rows in one commit, with `entry` as its `userMetadata` as Spark would store it."""
    metadata = {"userMetadata": entry.to_user_metadata()} if entry else None
    write_deltalake(
        path,
        rows,
        mode="append",
        storage_options=options,
        commit_properties=CommitProperties(custom_metadata=metadata),
    )


def write_batches(
    path: str,
    *batches: Sequence[Range],
    options: dict[str, str] | None = None,
    topic: str = TOPIC,
) -> None:
    """One commit per batch, sound, batch numbers from 0."""
    for number, ranges in enumerate(batches):
        entry = ledger(*ranges, batch=number, topic=topic)
        append(path, rows_of(*ranges, topic=topic), entry, options)
