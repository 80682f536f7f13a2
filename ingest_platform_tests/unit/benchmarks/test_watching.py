from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ingest_platform_tests.benchmarks.batches import (
    CheckpointClock,
    ProgressFile,
    StatusReports,
    joined,
)
from ingest_platform_tests.benchmarks.timeline import (
    DataCommit,
    DeltaTimeline,
    FileTimeline,
    rate,
    reached,
)
from ingest_platform_tests.factories import make_ledger

PROGRESS = {
    "batchId": 3,
    "timestamp": "2026-01-31T12:00:00.000Z",
    "numInputRows": 10,
    "durationMs": {"triggerExecution": 900, "addBatch": 700},
}


def commits(*records: int) -> list[DataCommit]:
    """One commit a second."""
    return [DataCommit(float(i), n, n, 1, 10) for i, n in enumerate(records)]


def test_what_spark_rounds_down_does_not_cost_a_batch():
    assert reached(commits(99_990, 99_990), 200_000) == 1
    assert reached(commits(99_990, 99_900), 200_000) is None


def test_rate_counts_what_came_after_the_first_commit():
    assert rate(commits(5, 100, 300), 0, 2) == 200


def test_delta_timeline_counts_records_by_the_ledger_and_passes_over_other_commits(tmp_path: Path):
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text('{"metaData":{}}\n')
    timeline = DeltaTimeline(tmp_path)
    assert timeline.commits() == []
    add = {"add": {"size": 7, "stats": json.dumps({"numRecords": 8})}}
    info = {"commitInfo": {"userMetadata": make_ledger(0, quarantined=2).to_user_metadata()}}
    path = log / f"{1:020d}.json"
    path.write_text(f"{json.dumps(info)}\n{json.dumps(add)}\n")
    os.utime(path, (50, 50))
    assert timeline.commits() == [DataCommit(50.0, records=10, rows=8, files=1, bytes=7)]


def test_file_timeline_waits_for_the_end_of_a_line(tmp_path: Path):
    progress = tmp_path / "progress.jsonl"
    line = json.dumps({"at": 1.0, "records": 5, "rows": 5, "bytes": 9})
    progress.write_text(f"{line}\n{line[:10]}")
    timeline = FileTimeline(progress)
    assert len(timeline.commits()) == 1
    progress.write_text(f"{line}\n{line}\n")
    assert len(timeline.commits()) == 2


def test_clocks_of_one_batch_are_joined(tmp_path: Path):
    for folder, at in (("offsets", 100.0), ("commits", 100.8)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "3").touch()
        os.utime(tmp_path / folder / "3", (at, at))
    (tmp_path / "progress").write_text(json.dumps(PROGRESS) + "\n")
    clock = CheckpointClock(tmp_path)
    clock.look()
    (batch,) = joined((clock, ProgressFile(tmp_path / "progress")))
    assert batch.seconds["checkpoint"] == pytest.approx(0.8)
    assert batch.seconds["trigger"] == 0.9
    assert batch.phases == {"addBatch": 0.7}


def test_status_reports_give_sparks_clock_only_if_the_driver_does(tmp_path: Path):
    report = {"id": 1, "finished_at": "2026-01-31T12:00:00+00:00", "seconds": 0.4, "rows": 9}
    document = tmp_path / "status.json"
    reports = StatusReports(document)
    reports.look()
    document.write_text(json.dumps({"recent": [report, {**report, "id": 2, "trigger_seconds": 1}]}))
    reports.look()
    assert reports.batches()[1].seconds == {"own": 0.4}
    assert reports.batches()[2].seconds == {"own": 0.4, "trigger": 1.0}
