"""The coordinate columns of a Delta table, streamed by delta-rs: no JVM, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from ingest_platform.adapters.delta_tables import PATIENT, options_for
from ingest_platform.errors import IngestError, StorageUnavailableError, UserError
from ingest_platform.maintain.audit.held import Held
from ingest_platform.spec.environment import StorageEnvironment

COLUMNS = ["_kafka_topic", "_kafka_partition", "_kafka_offset"]
_ROWS_AT_ONCE = 1_000_000  # sorting larger pieces makes fewer and longer runs


@dataclass(frozen=True)
class Scanned:
    """Rows that a scan took, and rows that it could not place for want of coordinates."""

    rows: int = 0
    without_coordinates: int = 0


def collect(
    table: str, storage: StorageEnvironment, held: Held, version: int | None = None
) -> Scanned:
    """Add a table's coordinates to `held`.

    Args:
        table: Path of the table; one that does not exist has no rows.
        storage: How to reach S3.
        held: Takes the offsets.
        version: The version to read; the newest when not given.

    Raises:
        UserError: The table has no coordinate columns.
        StorageUnavailableError: A data file or the log cannot be read.
    """
    try:
        options = options_for(table, storage)
        patient = {**options, **PATIENT} if options else None
        delta = DeltaTable(_uri(table), version=version, storage_options=patient)
    except TableNotFoundError:
        return Scanned()
    except (DeltaError, OSError) as error:
        raise _unreadable(error, table) from error
    _refuse_without_coordinates(delta, table)
    taken, unplaced = held.rows, 0
    try:
        for piece in _pieces(delta):
            unplaced += _add(piece, held)
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise _unreadable(error, table) from error
    return Scanned(held.rows - taken, unplaced)


def _pieces(delta: DeltaTable) -> Iterator[pa.Table]:
    """The table's rows in pieces of about a million."""
    # `scan` applies deletion vectors and column mapping, which a plain Parquet reader would not.
    reader = pa.RecordBatchReader.from_stream(delta.scan(columns=COLUMNS))
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(batches)
            batches, rows = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def _add(piece: pa.Table, held: Held) -> int:
    """Take the rows that have coordinates; return how many have none."""
    whole = piece.drop_null()
    topics, partitions, offsets = (whole.column(name) for name in COLUMNS)
    partition_numbers = partitions.cast(pa.int64()).to_numpy()
    offset_numbers = offsets.cast(pa.int64()).to_numpy()
    coded = topics.cast(pa.string()).dictionary_encode().combine_chunks()
    codes = coded.indices.to_numpy() if len(coded) else np.zeros(0, np.int32)
    for code, topic in enumerate(coded.dictionary.to_pylist() if len(coded) else []):
        mine = codes == code
        held.add(topic, partition_numbers[mine], offset_numbers[mine])
    return piece.num_rows - whole.num_rows


def _refuse_without_coordinates(delta: DeltaTable, table: str) -> None:
    missing = set(COLUMNS) - {field.name for field in delta.schema().fields}
    if missing:
        raise UserError(
            f"the table lacks {', '.join(sorted(missing))}, so its data cannot be audited",
            where=table,
            remedy="audit without --data, or set `table.coordinates: true` for new tables",
        )


def _uri(table: str) -> str:
    return table.removeprefix("file://")


def _unreadable(error: Exception, table: str) -> IngestError:
    text = " ".join(str(error).split())[:300]
    return StorageUnavailableError(
        f"the table's data cannot be read: {text}",
        where=table,
        remedy="check storage and credentials; if a file is gone, VACUUM removed it too early",
    )
