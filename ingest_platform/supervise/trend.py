"""How one driver's figures develop: its own baseline, and samples of the last two hours.

The status document holds the last batches only; what drifts over hours the supervisor must
remember. All times are the driver's own clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class Pace:
    """How fast some batches were: seconds per batch and per record, and records per second.

    `rate` is by the time from the first batch's end to the last one's, pauses included; 0 if that
    is not known.
    """

    batch: Spread
    record: Spread
    rate: float = 0.0


@dataclass(frozen=True)
class Trend:
    """What the supervisor remembers of one generation."""

    generation: int = 0
    baseline: Pace | None = None
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
            Pace(Spread(**base["batch"]), Spread(**base["record"]), base["rate"]) if base else None,
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
    return [b for b in status.recent if records(b) and _seconds(b) > 0]


def pace(batches: Sequence[BatchReport]) -> Pace:
    """Of batches with records, at least one."""
    return Pace(
        Spread.of([_seconds(b) for b in batches]),
        Spread.of([_seconds(b) / records(b) for b in batches]),
        _rate(batches),
    )


def _seconds(batch: BatchReport) -> float:
    """All of a batch, planning and checkpoint included, as soon as Spark has told it."""
    return max(batch.seconds, batch.trigger_seconds)


def _rate(batches: Sequence[BatchReport]) -> float:
    first, last = parse_time(batches[0].finished_at), parse_time(batches[-1].finished_at)
    if first is None or last is None or last <= first:
        return 0.0
    return sum(records(b) for b in batches[1:]) / (last - first).total_seconds()


def _baseline(status: Status) -> Pace | None:
    forgotten = status.totals.get("batches", 0) - len(status.recent)
    warm = busy(status)[max(0, _WARM_UP_BATCHES - forgotten) :]
    return pace(warm[:WINDOW_BATCHES]) if len(warm) >= WINDOW_BATCHES else None
