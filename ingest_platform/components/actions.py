"""What the ops of a stream's jobs do: the steps of `steer`, told to Dagster."""

import os
import time
from pathlib import Path

import dagster as dg

from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.stores import Stores
from ingest_platform.components import tags
from ingest_platform.components.launch_history import mark_error
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.errors import StreamPausedError
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StreamSpec
from ingest_platform.steer.ending import StillThere, drain, stop
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.starting import NotStarted, Started, start
from ingest_platform.steer.turnover import Patience, Refused, turnover


def reach_of(
    context: dg.OpExecutionContext,
    spec: StreamSpec,
    path: Path,
    s3: S3Resource,
    launcher: LauncherResource,
) -> Reach:
    """The stream's driver, its progress told to the run's log."""
    return Reach(
        stores=Stores.of(spec, s3.storage()),
        launcher=launcher.launcher(spec),
        launch=Launch(path, spec.name, launcher.logs_of(spec.name), dict(os.environ)),
        say=context.log.info,
        now=utc_now,
        clock=time.monotonic,
        sleep=time.sleep,
    )


def start_driver(context: dg.OpExecutionContext, reach: Reach, seconds: float) -> None:
    """Launch and wait.

    Raises:
        dagster.Failure: The stream is paused, or the driver ended or did not become healthy in
            time; with the driver's own error, and the tail of its log.
    """
    try:
        outcome = start(reach, seconds)
    except StreamPausedError as paused:
        raise dg.Failure(str(paused), allow_retries=False) from None
    _told(context, outcome)


def drain_driver(context: dg.OpExecutionContext, reach: Reach, seconds: float) -> None:
    """Ask the driver to end, and wait.

    Raises:
        dagster.Failure: It has not ended in time. It goes on draining.
    """
    by, why = _who_and_why(context)
    outcome = drain(reach, by=by, reason=why, seconds=seconds)
    if isinstance(outcome, StillThere):
        raise dg.Failure(
            f"Generation {outcome.generation} was asked to drain, but {outcome.reason}. "
            f"To end it at once, run the job {reach.name}_stop.",
            allow_retries=False,
        )


def restart_driver(
    context: dg.OpExecutionContext, reach: Reach, patience: Patience, *, overlap: bool
) -> None:
    """Replace the driver; one that does not drain in time is ended.

    Raises:
        dagster.Failure: As `start_driver`; a paused stream's driver is left alone, and so is one
            whose successor is refused.
    """
    by, why = _who_and_why(context)
    overlap = overlap and context.run.tags.get(tags.OVERLAP) != "no"
    try:
        outcome = turnover(reach, patience, by=by, reason=why, overlap=overlap)
    except StreamPausedError as paused:
        raise dg.Failure(str(paused), allow_retries=False) from None
    if isinstance(outcome, Refused):
        raise _failure(outcome)
    _told(context, outcome)


def stop_driver(context: dg.OpExecutionContext, reach: Reach) -> None:
    """End the driver's processes now."""
    ended = stop(reach)
    if ended.generation is None:
        context.log.info("Nothing to do: no driver was there.")


def _who_and_why(context: dg.OpExecutionContext) -> tuple[str, str]:
    run = context.run
    why = run.tags.get(tags.REASON, f"run {context.run_id} of {run.job_name}")
    return "supervisor" if tags.REASON in run.tags else "a person", why


def _told(context: dg.OpExecutionContext, outcome: Started | NotStarted) -> None:
    if isinstance(outcome, NotStarted):
        if outcome.error:
            mark_error(context.instance, context.run_id, outcome.error, outcome.after)
        raise _failure(outcome)
    _report(context, outcome)


def _failure(outcome: NotStarted | Refused) -> dg.Failure:
    error, log = outcome.error, outcome.runs_at.log
    why = f": {error.kind}: {error.message}\nremedy: {error.remedy}" if error else ""
    return dg.Failure(
        f"{outcome.reason}{why}\nlog: {log}\n{outcome.tail}",
        metadata={
            "log": dg.MetadataValue.path(log),
            "tail": dg.MetadataValue.md(f"```\n{outcome.tail}\n```"),
        },
        allow_retries=False,
    )


def _report(context: dg.OpExecutionContext, outcome: Started) -> None:
    status = outcome.status
    context.add_output_metadata(
        {
            "generation": status.generation,
            "host": status.runs_at.host,
            "pid": status.runs_at.pid,
            "log": (outcome.runs_at or status.runs_at).log,
            "session": status.session,
        }
    )
