"""What Kafka has acknowledged to a producer, by partition: one half of "nothing was lost"."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Acknowledged:
    """One partition's records, as the broker acknowledged them.

    Attributes:
        start: End of the partition when the producer started.
        next: The offset after the last acknowledged one.
        count: Acknowledged records.
    """

    start: int
    next: int
    count: int

    @property
    def whole(self) -> bool:
        """Whether the acknowledged offsets are `[start, next)` and no more: none twice, no gap."""
        return self.next - self.start == self.count


@dataclass(frozen=True)
class Receipts:
    """One run of a producer.

    Attributes:
        partitions: By partition number.
        failed: Records that the broker refused, or did not acknowledge before the producer ended.
        done: Whether the producer ended by itself, so that the counts are final.
    """

    partitions: Mapping[int, Acknowledged] = field(default_factory=dict)
    failed: int = 0
    done: bool = False

    @property
    def count(self) -> int:
        """Acknowledged records of this run."""
        return sum(p.count for p in self.partitions.values())

    @property
    def end(self) -> int:
        """Records in the topic, of this run and all before it."""
        return sum(p.next for p in self.partitions.values())

    def write(self, path: Path) -> None:
        """Replace the file at `path` atomically."""
        raw = {
            "partitions": {n: [p.start, p.next, p.count] for n, p in self.partitions.items()},
            "failed": self.failed,
            "done": self.done,
        }
        scratch = path.with_name(f"{path.name}.tmp")
        with scratch.open("w", encoding="utf-8") as file:
            json.dump(raw, file)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)

    @classmethod
    def read(cls, path: Path) -> Receipts:
        """What was last written; empty when nothing was."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls()
        partitions = {int(n): Acknowledged(*values) for n, values in raw["partitions"].items()}
        return cls(partitions, raw["failed"], raw["done"])
