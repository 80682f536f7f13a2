"""Degraded: a driver that works, but ever worse. Each finding is a sentence with its numbers.

Only what a restart can heal is a finding. A stream that never could keep up is undersized, not
degraded: replacing its driver every hour would make it slower still; freshness tells of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from ingest_platform.model.status import Status
from ingest_platform.supervise.policy import Policy
from ingest_platform.supervise.spread import slope
from ingest_platform.supervise.trend import WINDOW_BATCHES, Sample, Trend, busy, pace

_GIB = 2**30
_HOUR = 13  # samples, one each five minutes
_HALF_HOUR = 7
_NO_MORE = 1.05  # near saturation, a little more input makes much longer batches


def degraded(status: Status, trend: Trend, policy: Policy) -> str | None:
    """What drifts, in one sentence; None for a driver that is as good as it was."""
    if trend.generation != status.generation:
        return None
    found = [
        *_slower_batches(status, trend, policy),
        *_collections(trend.samples[-_HALF_HOUR:], policy),
        *_heap(trend.samples[-_HOUR:], policy),
        *_lag(trend.samples[-_HOUR:]),
    ]
    return "; ".join(found) or None


def _slower_batches(status: Status, trend: Trend, policy: Policy) -> Iterator[str]:
    """Slower by batch, and that not because more is in each.

    A batch has a fixed cost, so at night, with few records in each, seconds per record rise while
    the batches get shorter. And batches that follow each other without a pause hold the more
    records the longer they take: these are slower if no more records arrive than at first.
    """
    base, last = trend.baseline, busy(status)[-WINDOW_BATCHES:]
    fresh = status.totals.get("batches", 0) >= 2 * WINDOW_BATCHES
    if base is None or not fresh or len(last) < WINDOW_BATCHES:
        return
    now, ratio = pace(last), policy.drift_ratio
    if now.batch.median <= base.batch.bound(ratio):
        return
    took = f"batches take {now.batch.median:.1f} s, at first {base.batch.median:.1f} s, "
    if now.record.median > base.record.bound(ratio):
        yield f"{took}and {now.record.median / base.record.median:.1f} times as long per record"
    elif 0 < now.rate <= _NO_MORE * base.rate:
        yield f"{took}though no more records arrive ({now.rate:.0f}/s, at first {base.rate:.0f}/s)"


def _collections(samples: Sequence[Sample], policy: Policy) -> Iterator[str]:
    if len(samples) < _HALF_HOUR:
        return
    first, last = samples[0], samples[-1]
    share = (last.gc_seconds - first.gc_seconds) / (last.uptime - first.uptime)
    if share > policy.gc_share:
        yield f"garbage collection takes {share:.0%} of the time"


def _heap(samples: Sequence[Sample], policy: Policy) -> Iterator[str]:
    if len(samples) < _HALF_HOUR or not samples[-1].heap_max:
        return
    last = samples[-1]
    full = median(s.heap_after_gc for s in samples[-3:]) / last.heap_max
    if full > policy.heap_full:
        yield f"{full:.0%} of the heap of {last.heap_max / _GIB:.1f} GiB is live after collections"
        return
    rise = slope([(s.uptime, float(s.heap_after_gc)) for s in samples])
    left = last.heap_max - last.heap_after_gc
    # Below half, the collector just has not needed to look at the old generation yet.
    if len(samples) >= _HOUR and full > 0.5 and rise * policy.heap_horizon.total_seconds() > left:
        yield (
            f"the heap after collections rises by {rise * 3600 / _GIB:.2f} GiB/h "
            f"and is {full:.0%} full"
        )


def _lag(samples: Sequence[Sample]) -> Iterator[str]:
    """Lag that grows because processing has become slower, not because more arrives."""
    if len(samples) < _HOUR:
        return
    steps = list(pairwise(samples))
    growing = sum(b.behind > a.behind for a, b in steps)
    arrived = [_rate(a, b, b.records - a.records + b.behind - a.behind) for a, b in steps]
    done = [_rate(a, b, b.records - a.records) for a, b in steps]
    half = len(steps) // 2
    flat = median(arrived[half:]) <= 1.2 * median(arrived[:half])
    slower = median(done[half:]) < 0.9 * median(done[:half])
    behind = samples[-1].behind - samples[0].behind
    if growing >= 0.8 * len(steps) and flat and slower and behind > 60 * median(arrived):
        yield (
            f"the lag has grown by {behind} records in an hour at a steady input of "
            f"{median(arrived):.0f} records/s"
        )


def _rate(a: Sample, b: Sample, count: int) -> float:
    return count / (b.uptime - a.uptime)
