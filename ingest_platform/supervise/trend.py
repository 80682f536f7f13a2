"""How one driver's figures develop: its own baseline, and samples of the last two hours.

The status document holds the last batches only; what drifts over hours the supervisor must
remember. All times are the driver's own clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport, Status
from ingest_platform.model.times import parse_time
from ingest_platform.supervise.spread import Spread

WINDOW_BATCHES = 20
_WARM_UP_BATCHES = 5  # the JVM compiles hot code; their durations say nothing
_SAMPLE_SECONDS = 300.0
_SAMPLES = 24


@dataclass(frozen=True)
class Sample:
    """One look. `uptime` and `gc_seconds` since the driver started; memory in bytes.

    `behind` is offsets behind latest, `records` all that the driver has processed.
    """

    uptime: float
    gc_seconds: float
    heap_after_gc: int
    heap_max: int
    behind: int
    records: int


@dataclass(frozen=True)
class Baseline:
    """Seconds per batch and per record of the driver's first warm batches."""

    batch: Spread
    record: Spread


@dataclass(frozen=True)
class Trend:
    """What the supervisor remembers of one generation."""

    generation: int = 0
    baseline: Baseline | None = None
    samples: tuple[Sample, ...] = ()

    def look(self, status: Status | None) -> Trend:
        """Take another look; another generation begins anew."""
        if status is None or status.state is not StreamState.RUNNING:
            return self
        mine = self if self.generation == status.generation else Trend(status.generation)
        mine = mine._sampled(status)
        return mine if mine.baseline else replace(mine, baseline=_baseline(status))

    def _sampled(self, status: Status) -> Trend:
        uptime = age(status).total_seconds()
        if self.samples and uptime < self.samples[-1].uptime + _SAMPLE_SECONDS:
            return self
        jvm, totals = status.jvm, status.totals
        made = Sample(
            round(uptime, 1),
            jvm.gc_seconds,
            jvm.heap_after_gc,
            jvm.heap_max,
            status.records_behind,
            sum(totals.get(name, 0) for name in ("rows", "quarantined", "skipped")),
        )
        return replace(self, samples=(*self.samples, made)[-_SAMPLES:])

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Trend:
        """From the form that `dataclasses.asdict` makes.

        Raises:
            KeyError, TypeError: It is of another version.
        """
        base = raw["baseline"]
        return cls(
            raw["generation"],
            Baseline(Spread(**base["batch"]), Spread(**base["record"])) if base else None,
            tuple(Sample(**sample) for sample in raw["samples"]),
        )


def age(status: Status) -> timedelta:
    """How long the driver had run when it wrote this, by its own clock."""
    started, updated = parse_time(status.started_at), parse_time(status.updated_at)
    return max(timedelta(0), updated - started) if started and updated else timedelta(0)


def records(batch: BatchReport) -> int:
    """Records that the batch read."""
    return batch.rows + batch.quarantined + batch.skipped


def busy(status: Status) -> list[BatchReport]:
    """The last batches with records in them."""
    return [b for b in status.recent if records(b) and b.seconds > 0]


def spreads(batches: list[BatchReport]) -> Baseline:
    """Median and spread of a batch's and of a record's seconds."""
    return Baseline(
        Spread.of([b.seconds for b in batches]),
        Spread.of([b.seconds / records(b) for b in batches]),
    )


def _baseline(status: Status) -> Baseline | None:
    forgotten = status.totals.get("batches", 0) - len(status.recent)
    warm = busy(status)[max(0, _WARM_UP_BATCHES - forgotten) :]
    return spreads(warm[:WINDOW_BATCHES]) if len(warm) >= WINDOW_BATCHES else None
