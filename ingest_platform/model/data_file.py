"""One live data file of a table, as compaction looks at it."""

from __future__ import annotations

from dataclasses import dataclass

# Column and value, in the table's order; values as the log has them, None for null.
Partition = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that is part of the newest version.

    Attributes:
        partition: Where it lies; empty for a table without partitions.
        bytes: Its size.
        modified_ms: When it was written, milliseconds since the epoch by the writer's clock.
    """

    partition: Partition
    bytes: int
    modified_ms: int
