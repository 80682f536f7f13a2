"""What was done to a stream's drivers, read from Dagster's runs of its jobs."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import this_process
from ingest_platform.components import tags
from ingest_platform.model.launches import LaunchOutcome, LaunchRecord
from ingest_platform.model.status import ErrorReport, RunsAt

_LIMIT = 10
_OUTCOMES = {
    dg.DagsterRunStatus.SUCCESS: LaunchOutcome.HEALTHY,
    dg.DagsterRunStatus.FAILURE: LaunchOutcome.FAILED,
    dg.DagsterRunStatus.CANCELED: LaunchOutcome.FAILED,
}


def launches(instance: dg.DagsterInstance, *jobs: str) -> tuple[LaunchRecord, ...]:
    """The last runs of these jobs, oldest first.

    A run whose process is gone, as after Ctrl-C of `dagster dev`, is marked as failed on the way:
    Dagster itself would leave it as started for ever, and it would block the stream's next run.
    """
    found = [
        _launch(instance, record)
        for job in jobs
        for record in instance.get_run_records(dg.RunsFilter(job_name=job), limit=_LIMIT)
    ]
    return tuple(sorted(found, key=lambda record: record.requested_at))


def mark_worker(instance: dg.DagsterInstance, run_id: str) -> None:
    """Note on a run which process executes it; called by that process."""
    here = this_process()
    worker = f"{here.host} {here.pid} {here.started_ticks:.0f}"
    instance.add_run_tags(run_id, {tags.WORKER: worker})


def mark_error(instance: dg.DagsterInstance, run_id: str, error: ErrorReport, after: int) -> None:
    """Note on a run the error that its driver ended with, so that the supervisor knows it."""
    noted = {
        tags.ERROR: error.kind,
        tags.MESSAGE: tags.text_tag(error.message),
        tags.REMEDY: tags.text_tag(error.remedy),
        tags.AFTER: str(after),
        **({tags.RETRYABLE: "true"} if error.retryable else {}),
    }
    instance.add_run_tags(run_id, noted)


def _launch(instance: dg.DagsterInstance, record: dg.RunRecord) -> LaunchRecord:
    run = record.dagster_run
    outcome, ended = _OUTCOMES.get(run.status, LaunchOutcome.PENDING), record.end_time
    if run.status is dg.DagsterRunStatus.STARTED and _worker_is_gone(run):
        instance.report_run_failed(run, "The process that executed this run is gone.")
        outcome, ended = LaunchOutcome.FAILED, datetime.now(UTC).timestamp()
    return LaunchRecord(
        id=run.run_id,
        requested_at=record.create_timestamp,
        outcome=outcome,
        ended_at=datetime.fromtimestamp(ended, UTC) if ended else None,
        attempt=_number(run, tags.ATTEMPT, 1),
        error=_error(run),
        after=_number(run, tags.AFTER, 0),
        cause=run.tags.get(tags.CAUSE, ""),
        action=run.job_name.rpartition("_")[2],
    )


def _error(run: dg.DagsterRun) -> ErrorReport | None:
    kind = run.tags.get(tags.ERROR)
    if not kind:
        return None
    message, remedy = run.tags.get(tags.MESSAGE, ""), run.tags.get(tags.REMEDY, "")
    return ErrorReport(kind, message, remedy, retryable=tags.RETRYABLE in run.tags)


def _number(run: dg.DagsterRun, tag: str, default: int) -> int:
    text = run.tags.get(tag, "")
    return int(text) if text.isdigit() else default


def _worker_is_gone(run: dg.DagsterRun) -> bool:
    """Only when it is certain: a worker on another host, or one that left no note, may live."""
    match run.tags.get(tags.WORKER, "").split():
        case [host, pid, ticks] if pid.isdigit() and ticks.isdigit():
            runs_at = RunsAt(host=host, pid=int(pid), started_ticks=float(ticks))
            return LocalLauncher().alive(runs_at) is False
        case _:
            return False
