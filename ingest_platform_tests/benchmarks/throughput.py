"""Part `throughput`: a long backlog, read from process start as fast as each contender can.

The topic holds more than is measured, so no measured batch touches the end of the log, where a
Kafka source waits for records to come.

- first commit, first N: from process start to the log entry with which they became readable.
- cold: records by seconds from process start, of the first quarter of N.
- warm: records per second between the commits that reached N and 2 N, in the same process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from ingest_platform_tests.benchmarks.contender import Contender, Job
from ingest_platform_tests.benchmarks.figures import Figures
from ingest_platform_tests.benchmarks.process_tree import Usage
from ingest_platform_tests.benchmarks.run import Run, running
from ingest_platform_tests.benchmarks.timeline import DataCommit, rate, reached

PART = "throughput"

_STALL_SECONDS = 180.0
_LOOK_SECONDS = 0.2
_MEGA = 1e6


@dataclass(frozen=True)
class Course:
    """What one run showed.

    Attributes:
        started_at: Seconds since 1970.
        commits: Oldest first, up to the one that reached 2 N.
        samples: Of memory and CPU, up to then.
    """

    started_at: float
    commits: tuple[DataCommit, ...]
    samples: tuple[Usage, ...]


def topic_records(first: int, largest_batch: int) -> int:
    """Records that the topic must hold for `first` N: 2 N are measured, a batch lies behind."""
    return 2 * first + max(first // 4, largest_batch)


def measure(
    contender: Contender, job: Job, first: int, figures: Figures, told: Callable[[int], None]
) -> Course:
    """Run one contender over 2 x `first` records and book its figures.

    Raises:
        ContenderFailedError: It failed, or committed nothing for three minutes.
    """
    with running(contender, job) as run:
        _wait(run, 2 * first, told)
    everything = tuple(run.timeline.commits())
    commits = everything[: _index(everything, 2 * first) + 1]
    _book_speed(contender.key, run, commits, first, figures)
    _book_cost(contender.key, run, commits, first, figures)
    samples = tuple(s for s in run.tree.samples if s.at <= commits[-1].at)
    return Course(run.started_at, commits, samples)


def _wait(run: Run, records: int, told: Callable[[int], None]) -> None:
    seen, deadline = 0, time.monotonic() + _STALL_SECONDS
    while reached(run.timeline.commits(), records) is None:
        run.check()
        if run.records() > seen:
            seen, deadline = run.records(), time.monotonic() + _STALL_SECONDS
        elif time.monotonic() > deadline:
            raise run.fail(f"stands still at {seen} of {records} records")
        told(seen)
        time.sleep(_LOOK_SECONDS)
    told(records)


def _book_speed(
    key: str, run: Run, commits: tuple[DataCommit, ...], first: int, figures: Figures
) -> None:
    cold = _index(commits, first // 4)
    middle, end = _index(commits, first), len(commits) - 1
    cold_records = sum(c.records for c in commits[: cold + 1])
    cold_seconds = commits[cold].at - run.started_at
    figures.add(PART, key, "warm", rate(commits, middle, end), "records/s")
    figures.add(PART, key, "cold", cold_records / cold_seconds, "records/s")
    figures.add(PART, key, "first N", commits[middle].at - run.started_at, "s")
    figures.add(PART, key, "first commit", commits[0].at - run.started_at, "s")
    figures.add(PART, key, "files per batch", median(c.files for c in commits), "files")
    figures.add(PART, key, "records per batch", median(c.records for c in commits), "records")
    bytes_per_record = sum(c.bytes for c in commits) / sum(c.records for c in commits)
    figures.add(PART, key, "bytes per record", bytes_per_record, "bytes")


def _book_cost(
    key: str, run: Run, commits: tuple[DataCommit, ...], first: int, figures: Figures
) -> None:
    middle = _index(commits, first)
    at_middle = run.tree.cpu_seconds_at(commits[middle].at)
    at_end = run.tree.cpu_seconds_at(commits[-1].at)
    so_far = sum(c.records for c in commits[: middle + 1]) / _MEGA
    after = sum(c.records for c in commits[middle + 1 :]) / _MEGA
    unit = "CPU s/million"
    figures.add(PART, key, "CPU, first N", at_middle / so_far, unit)
    figures.add(PART, key, "CPU, warm", (at_end - at_middle) / after if after else 0.0, unit)
    figures.add(PART, key, "peak memory", run.tree.peak_rss() / _MEGA, "MB")


def _index(commits: tuple[DataCommit, ...], records: int) -> int:
    found = reached(commits, records)
    return len(commits) - 1 if found is None else found
