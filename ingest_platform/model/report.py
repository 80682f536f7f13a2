"""What one materialization says: the batches since the last one, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from ingest_platform.model.offsets import OffsetRanges


@dataclass(frozen=True)
class Quantiles:
    """Seconds; all 0 without a sample."""

    p50: float = 0.0
    p95: float = 0.0
    max: float = 0.0

    @classmethod
    def of(cls, samples: list[float]) -> Quantiles:
        """Nearest-rank quantiles: each is one of the samples."""
        if not samples:
            return cls()
        ordered = sorted(samples)

        def rank(percent: int) -> float:
            return ordered[-(-len(ordered) * percent // 100) - 1]

        return cls(rank(50), rank(95), ordered[-1])


@dataclass(frozen=True)
class Report:
    """An aggregate over batches.

    Attributes:
        from_version: Table version of the last report, exclusive.
        table_version: Table version of this one, inclusive.
        seconds: The time that the report spans.
        batches: Commits of the stream in it.
        rows: Rows written to the table.
        quarantined: Records written to the quarantine table.
        skipped: Records dropped by a declared policy.
        files: Files written.
        bytes: Bytes written.
        offsets: From the first offset read to the last, by partition.
        batch_seconds: Durations of the batches that the status document still knew.
        lag_records: Offsets behind latest.
        lag_seconds: Age of the oldest record not yet in the table; 0 when caught up.
    """

    from_version: int
    table_version: int
    seconds: float
    batches: int = 0
    rows: int = 0
    quarantined: int = 0
    skipped: int = 0
    files: int = 0
    bytes: int = 0
    offsets: OffsetRanges = field(default_factory=OffsetRanges)
    batch_seconds: Quantiles = field(default_factory=Quantiles)
    lag_records: int = 0
    lag_seconds: float = 0.0

    @property
    def records(self) -> int:
        """Records that the batches read."""
        return self.rows + self.quarantined + self.skipped

    @property
    def rows_per_second(self) -> float:
        """Rows over the whole time that the report spans, idle time included."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0
