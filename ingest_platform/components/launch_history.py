"""The history of a stream's launches, read from Dagster's runs of its start job."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import this_process
from ingest_platform.components import tags
from ingest_platform.model.launches import LaunchOutcome, LaunchRecord
from ingest_platform.model.status import RunsAt

_LIMIT = 10
_OUTCOMES = {
    dg.DagsterRunStatus.SUCCESS: LaunchOutcome.HEALTHY,
    dg.DagsterRunStatus.FAILURE: LaunchOutcome.FAILED,
    dg.DagsterRunStatus.CANCELED: LaunchOutcome.FAILED,
}


def launches(instance: dg.DagsterInstance, job: str) -> tuple[LaunchRecord, ...]:
    """The last launches, oldest first.

    A run whose process is gone, as after Ctrl-C of `dagster dev`, is marked as failed on the way:
    Dagster itself would leave it as started for ever, and it would block the stream's next run.
    """
    records = instance.get_run_records(dg.RunsFilter(job_name=job), limit=_LIMIT)
    return tuple(_launch(instance, record) for record in reversed(records))


def mark_worker(instance: dg.DagsterInstance, run_id: str) -> None:
    """Note on a run which process executes it; called by that process."""
    here = this_process()
    worker = f"{here.host} {here.pid} {here.started_ticks:.0f}"
    instance.add_run_tags(run_id, {tags.WORKER: worker})


def _launch(instance: dg.DagsterInstance, record: dg.RunRecord) -> LaunchRecord:
    run = record.dagster_run
    outcome, ended = _OUTCOMES.get(run.status, LaunchOutcome.PENDING), record.end_time
    if run.status is dg.DagsterRunStatus.STARTED and _worker_is_gone(run):
        instance.report_run_failed(run, "The process that executed this run is gone.")
        outcome, ended = LaunchOutcome.FAILED, datetime.now(UTC).timestamp()
    attempt = run.tags.get(tags.ATTEMPT, "")
    return LaunchRecord(
        id=run.run_id,
        requested_at=record.create_timestamp,
        outcome=outcome,
        ended_at=datetime.fromtimestamp(ended, UTC) if ended else None,
        attempt=int(attempt) if attempt.isdigit() else 1,
    )


def _worker_is_gone(run: dg.DagsterRun) -> bool:
    """Only when it is certain: a worker on another host, or one that left no note, may live."""
    match run.tags.get(tags.WORKER, "").split():
        case [host, pid, ticks] if pid.isdigit() and ticks.isdigit():
            runs_at = RunsAt(host=host, pid=int(pid), started_ticks=float(ticks))
            return LocalLauncher().alive(runs_at) is False
        case _:
            return False
