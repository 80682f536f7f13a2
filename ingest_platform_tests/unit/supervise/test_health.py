"""Degraded or not: what a restart would heal, and what it would not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.model.status import BatchReport, JvmReport, Status
from ingest_platform.supervise.drift import degraded
from ingest_platform.supervise.health import age_limit, hung, stuck
from ingest_platform.supervise.memory import Memory
from ingest_platform.supervise.policy import Policy
from ingest_platform.supervise.seen import Seen
from ingest_platform.supervise.trend import Sample, Trend
from ingest_platform_tests.factories import NOW, make_spec, make_status

POLICY = Policy()
SPEC = make_spec()
GIB = 2**30


def batches(seconds: float, rows: int, jitter: float = 0.1) -> tuple[BatchReport, ...]:
    """Sixty batches around a duration."""
    return tuple(
        BatchReport(id=i, rows=rows, seconds=seconds * (1 + jitter * (-1) ** i)) for i in range(60)
    )


def busy(seconds: float = 2, rows: int = 10_000, total: int = 500) -> Status:
    return make_status(recent=batches(seconds, rows), totals={"batches": total})


TREND = Trend().look(busy())


def samples(count: int = 24, **growth: float) -> tuple[Sample, ...]:
    """One each five minutes; `growth` per sample of a field, from sensible values."""
    base = {"gc_seconds": 0.0, "heap_after_gc": GIB // 2, "behind": 0, "records": 0}
    return tuple(
        Sample(
            uptime=300.0 * i,
            heap_max=2 * GIB,
            **{name: start + growth.get(name, 0) * i for name, start in base.items()},
        )
        for i in range(count)
    )


def finding(found: tuple[Sample, ...]) -> str | None:
    return degraded(make_status(), Trend(1, None, found), POLICY)


def test_slower_batches_of_the_same_size_are_drift():
    assert degraded(busy(), TREND, POLICY) is None
    assert degraded(busy(seconds=3.5), TREND, POLICY) is None
    found = degraded(busy(seconds=6), TREND, POLICY)
    assert found == "batches take 6.0 s, at first 2.0 s, and 3.0 times as long per record"


@given(st.floats(0.01, 100))
def test_a_changed_input_rate_is_no_drift(factor):
    """A batch has a fixed cost of 1 s: by night each record is dear, by day each batch is long."""
    rows = max(1, round(10_000 * factor))
    assert degraded(busy(seconds=1 + rows / 10_000, rows=rows), TREND, POLICY) is None


def without_a_pause(rate: float, fixed: float, each: float) -> Status:
    """Batches back to back that keep up: what one takes is what the next one holds."""
    seconds = fixed / (1 - rate * each)
    ends = [(NOW + timedelta(seconds=seconds * i)).isoformat() for i in range(60)]
    made = batches(seconds, round(rate * seconds), jitter=0.02)
    recent = tuple(replace(b, finished_at=at) for b, at in zip(made, ends, strict=True))
    return make_status(recent=recent, totals={"batches": 500})


def test_batches_without_a_pause_that_get_longer_at_the_same_input_are_drift():
    """By the record they are as fast as ever: the longer they take, the more each one holds."""
    trend = Trend().look(without_a_pause(rate=4_000, fixed=1, each=1e-4))
    slower = without_a_pause(rate=4_000, fixed=5, each=1e-4)
    said = degraded(slower, trend, POLICY)
    assert said is not None
    assert said.endswith("though no more records arrive (4000/s, at first 4000/s)")
    assert degraded(without_a_pause(rate=4_000, fixed=1.5, each=1e-4), trend, POLICY) is None


@given(st.floats(0.05, 2.2))
def test_another_input_rate_without_a_pause_is_no_drift(factor):
    trend = Trend().look(without_a_pause(rate=4_000, fixed=1, each=1e-4))
    status = without_a_pause(rate=4_000 * factor, fixed=1, each=1e-4)
    assert degraded(status, trend, POLICY) is None


def test_what_spark_spends_around_a_batch_counts():
    """Planning and checkpoint are none of the platform's phases, and drift as well."""
    slow = tuple(replace(b, trigger_seconds=7.0) for b in batches(2, 10_000))
    found = degraded(replace(busy(), recent=slow), TREND, POLICY)
    assert found == "batches take 7.0 s, at first 2.0 s, and 3.5 times as long per record"


def test_a_few_slow_batches_are_no_drift():
    """Every tenth writes a checkpoint of the log; one may wait for a slow disk."""
    slow = [replace(b, seconds=60) if i % 3 == 0 else b for i, b in enumerate(batches(2, 10_000))]
    assert degraded(replace(busy(), recent=tuple(slow)), TREND, POLICY) is None


def test_a_new_generation_has_a_new_baseline():
    successor = replace(busy(seconds=6), generation=2)
    assert degraded(successor, TREND, POLICY) is None
    assert degraded(successor, TREND.look(successor), POLICY) is None


def test_baseline_leaves_out_the_first_cold_batches():
    cold = tuple(replace(b, seconds=50) for b in batches(2, 10_000)[:5])
    young = make_status(recent=(*cold, *batches(2, 10_000)[5:24]), totals={"batches": 24})
    assert Trend().look(young).baseline is None
    warm = make_status(recent=(*cold, *batches(2, 10_000)[5:25]), totals={"batches": 25})
    baseline = Trend().look(warm).baseline
    assert baseline is not None
    assert baseline.batch.median < 2.3


def test_garbage_collection_and_heap():
    assert finding(samples()) is None
    assert finding(samples(gc_seconds=90)) == "garbage collection takes 30% of the time"
    assert "95% of the heap of 2.0 GiB" in (finding(samples(heap_after_gc=GIB / 15.7)) or "")
    assert "rises by 0.60 GiB/h" in (finding(samples(18, heap_after_gc=GIB / 20)) or "")
    assert finding(samples(heap_after_gc=GIB / 200)) is None


def test_growing_lag_is_drift_only_where_processing_became_slower():
    """A stream that never kept up is undersized: an hourly turnover would make it slower still."""
    undersized = samples(13, behind=100_000, records=300_000)
    assert finding(undersized) is None
    slower = tuple(
        replace(s, records=400_000 * i - s.behind)
        for i, s in enumerate(
            replace(s, behind=1_000 * i + max(0, i - 6) * 150_000)
            for i, s in enumerate(samples(13))
        )
    )
    assert "the lag has grown by 912000 records in an hour" in (finding(slower) or "")
    more_input = tuple(
        replace(s, records=400_000 * i, behind=1_000 * i + max(0, i - 6) * 300_000)
        for i, s in enumerate(samples(13))
    )
    assert finding(more_input) is None


def test_a_machine_that_slept_is_not_hung():
    """The supervisor slept as well: its one look after hours proves nothing."""
    seen = Seen(now=NOW, alive=True, quiet=timedelta(hours=8), looks=1)
    assert hung(make_status(), seen, POLICY) is None
    assert hung(make_status(), replace(seen, looks=3), POLICY)


def test_idle_topic_and_long_batches_are_not_stuck():
    def at(minutes: float) -> str:
        return (NOW + timedelta(minutes=minutes)).isoformat()

    behind = make_status(behind={"t-0": 1}, updated_at=at(20))
    assert stuck(SPEC, behind, POLICY)
    assert stuck(SPEC, replace(behind, behind={}), POLICY) is None
    assert stuck(SPEC, replace(behind, caught_up_at=at(19)), POLICY) is None
    done = BatchReport(finished_at=at(10), seconds=1)
    assert stuck(SPEC, replace(behind, last_batch=done), POLICY) is None
    assert stuck(SPEC, replace(behind, recent=(BatchReport(seconds=300),)), POLICY) is None


@given(st.integers(1, 10_000))
def test_turnover_by_age_is_spread_and_stable(generation):
    limit = age_limit("clicks", generation, POLICY)
    assert limit == age_limit("clicks", generation, POLICY)
    assert limit is not None
    assert timedelta(hours=18) <= limit <= timedelta(hours=20)
    assert age_limit("clicks", generation, replace(POLICY, max_age=timedelta(0))) is None


def test_trend_survives_the_cursor():
    status = replace(busy(), jvm=JvmReport(heap_max=2 * GIB))
    memory = Memory(trend=Trend().look(status))
    assert memory.trend.baseline
    assert memory.trend.samples
    assert Memory.from_cursor(memory.to_cursor()) == memory
