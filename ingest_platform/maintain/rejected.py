"""What a stream rejected and why, grouped: the quarantine read by delta-rs, no JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from ingest_platform.adapters.delta_tables import open_table
from ingest_platform.errors import StorageUnavailableError
from ingest_platform.spec.environment import StorageEnvironment

_COLUMNS = [
    *("reason", "detail", "value", "quarantined_at"),
    *("_kafka_topic", "_kafka_partition", "_kafka_offset"),
]
_VALUE_BYTES = 200
_OF_VALUE = re.compile(r": [^;]*")


@dataclass(frozen=True)
class Sample:
    """One rejected record: where it is in Kafka, why it was rejected, and how its value begins."""

    place: str
    detail: str
    value: str


@dataclass
class Group:
    """Records that were rejected for one reason.

    Attributes:
        reason: As in the quarantine table.
        detail: Which fields, without their values.
        records: How many.
        first: When the first one was quarantined, ISO 8601 UTC.
        last: When the last one was.
        samples: A few of them.
    """

    reason: str
    detail: str
    records: int = 0
    first: str = ""
    last: str = ""
    samples: list[Sample] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of one group in `ingest-platform quarantine list --json`."""
        return asdict(self)


def rejected_groups(path: str, storage: StorageEnvironment, samples: int) -> list[Group]:
    """The rejected records by reason, the largest group first.

    Args:
        path: Of the quarantine table; one that does not exist holds nothing.
        storage: How to reach S3.
        samples: How many to show of each group.

    Raises:
        StorageUnavailableError: It cannot be read.
    """
    groups: dict[tuple[str, str], Group] = {}
    for row in _rows(path, storage):
        key = (row["reason"] or "", _OF_VALUE.sub("", row["detail"] or ""))
        _take(groups.setdefault(key, Group(*key)), row, samples)
    return sorted(groups.values(), key=lambda g: (-g.records, g.reason, g.detail))


def _rows(path: str, storage: StorageEnvironment) -> Iterator[dict[str, Any]]:
    table = open_table(path, storage)
    if table is None:
        return
    try:
        for batch in pa.RecordBatchReader.from_stream(table.scan(columns=_COLUMNS)):
            yield from batch.to_pylist()
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise StorageUnavailableError(
            f"the quarantine cannot be read: {' '.join(str(error).split())[:300]}",
            where=path,
            remedy="check storage and credentials",
        ) from error


def _take(group: Group, row: Mapping[str, Any], samples: int) -> None:
    group.records += 1
    at: datetime | None = row["quarantined_at"]
    if at is not None:
        text = at.isoformat(timespec="seconds")
        group.first = min(group.first or text, text)
        group.last = max(group.last, text)
    if len(group.samples) < samples:
        group.samples.append(_sample(row))


def _sample(row: Mapping[str, Any]) -> Sample:
    place = f"{row['_kafka_topic']}-{row['_kafka_partition']}@{row['_kafka_offset']}"
    value: bytes = row["value"] or b""
    more = "..." if len(value) > _VALUE_BYTES else ""
    text = value[:_VALUE_BYTES].decode(errors="replace")
    return Sample(place, _printable(row["detail"] or ""), f"{_printable(text)}{more}")


def _printable(text: str) -> str:
    """Control characters of a record must not reach a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
