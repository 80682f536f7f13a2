"""Kafka offsets: positions in a topic, and the ranges between two positions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class OffsetRange:
    """Offsets `[start, until)` of one partition; `until` is exclusive, as in Kafka and Spark."""

    topic: str
    partition: int
    start: int
    until: int

    def __post_init__(self) -> None:
        if self.start < 0 or self.until < self.start:
            raise ValueError(
                f"offset range {self.topic}-{self.partition} [{self.start}, {self.until}) "
                "must satisfy 0 <= start <= until"
            )

    @property
    def width(self) -> int:
        """Number of offsets in the range: an upper bound of its records, exact without gaps."""
        return self.until - self.start


@dataclass(frozen=True)
class Positions:
    """The next offset to read, by topic and partition: what Spark's offset log stores per batch."""

    by_topic: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, Mapping[int, int]])

    @classmethod
    def from_json(cls, text: str) -> Positions:
        """Read Spark's form, `{"topic": {"0": 17}}`."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, raw: Mapping[str, Mapping[str, int]]) -> Positions:
        """Read the form of status documents and records, `{"topic": {"0": 17}}`."""
        return cls({t: {int(p): int(o) for p, o in ps.items()} for t, ps in raw.items()})

    def to_dict(self) -> dict[str, dict[str, int]]:
        """The form of status documents: partitions are text, as JSON's keys must be."""
        return {
            t: {str(p): o for p, o in sorted(ps.items())} for t, ps in sorted(self.by_topic.items())
        }

    def to_json(self) -> str:
        """Write Spark's form, the one that `startingOffsets` takes."""
        return json.dumps(self.to_dict())

    def get(self, topic: str, partition: int) -> int | None:
        """The next offset of a partition, or None for a partition that is not known here."""
        return self.by_topic.get(topic, {}).get(partition)

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        """Yield `(topic, partition, next offset)` in order."""
        for topic, partitions in sorted(self.by_topic.items()):
            for partition, offset in sorted(partitions.items()):
                yield topic, partition, offset


@dataclass(frozen=True)
class OffsetRanges:
    """What one batch reads: at most one range per partition, in order."""

    ranges: tuple[OffsetRange, ...] = ()

    @classmethod
    def between(cls, start: Positions, end: Positions) -> OffsetRanges:
        """The ranges from `start` to `end`.

        A partition that only `end` knows appeared while the stream ran; Kafka numbers it from 0,
        and Spark reads it from its earliest offset, so its range starts at 0.
        """
        return cls(
            tuple(
                OffsetRange(topic, partition, start.get(topic, partition) or 0, until)
                for topic, partition, until in end
            )
        )

    @classmethod
    def from_ledger(cls, raw: Mapping[str, Mapping[str, list[int]]]) -> OffsetRanges:
        """Read the ledger's form, `{"topic": {"0": [from, until]}}`."""
        return cls(
            tuple(
                sorted(
                    OffsetRange(topic, int(partition), int(start), int(until))
                    for topic, partitions in raw.items()
                    for partition, (start, until) in partitions.items()
                )
            )
        )

    def to_ledger(self) -> dict[str, dict[str, list[int]]]:
        """Write the ledger's form, without the partitions that have no records."""
        out: dict[str, dict[str, list[int]]] = {}
        for r in self.ranges:
            if r.width:
                out.setdefault(r.topic, {})[str(r.partition)] = [r.start, r.until]
        return out

    @property
    def width(self) -> int:
        """Number of offsets over all partitions."""
        return sum(r.width for r in self.ranges)

    def __iter__(self) -> Iterator[OffsetRange]:
        return iter(self.ranges)
