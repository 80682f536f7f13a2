"""The job `<name>_start`: launches a stream's driver, waits until it is healthy, and ends."""

import os
import time
from pathlib import Path

import dagster as dg

from ingest_platform.adapters.launcher import Launch
from ingest_platform.components import tags
from ingest_platform.components.launch_history import mark_error, mark_worker
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.components.stores import Stores
from ingest_platform.model.status import RunsAt, Status
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.launching import Looks, NotHealthy, await_healthy


def start_job_name(spec: StreamSpec) -> str:
    """Name of the stream's start job."""
    return f"{spec.name}_start"


def start_job(spec: StreamSpec, spec_path: Path) -> dg.JobDefinition:
    """Build the job. It starts nothing when the stream is paused or its driver runs."""

    @dg.op(
        name=f"{spec.name}_launch_driver",
        description=f"Launch the driver of {spec.name} and wait until it is healthy.",
        tags={"kind": "spark"},
    )
    def launch_driver(
        context: dg.OpExecutionContext, s3: S3Resource, launcher: LauncherResource
    ) -> None:
        mark_worker(context.instance, context.run_id)
        start(context, spec, spec_path, Stores.of(spec, s3.storage()), launcher)

    @dg.job(
        name=start_job_name(spec),
        description=f"Start the driver of {spec.name}, unless it runs or the stream is paused.",
        tags={
            tags.STREAM: spec.name,
            tags.ACTION: "start",
            "dagster/max_runtime": "900",
            "dagster/max_retries": "0",  # the supervisor retries, with backoff
        },
        executor_def=dg.in_process_executor,
    )
    def start_() -> None:
        launch_driver()

    return start_


def start(
    context: dg.OpExecutionContext,
    spec: StreamSpec,
    spec_path: Path,
    stores: Stores,
    resource: LauncherResource,
) -> None:
    """Launch and wait.

    Raises:
        dagster.Failure: The stream is paused, or the driver ended or did not become healthy in
            time; with the driver's own error, and the tail of its log.
    """
    launcher = resource.launcher()
    _refuse_if_paused(spec, stores)
    before = stores.status.read(spec.name)
    if before and launcher.alive(before.runs_at):
        context.log.info(f"Nothing to do: generation {before.generation} runs.")
        return
    if before and launcher.kill(before.runs_at):
        context.log.warning(f"Ended what generation {before.generation} had left behind.")
    lease = stores.lease.current()
    after = lease.generation if lease else 0
    runs_at = launcher.launch(
        Launch(spec_path, spec.name, resource.logs_of(spec.name), dict(os.environ))
    )
    context.log.info(f"Launched process {runs_at.pid}; its log: {runs_at.log}")
    outcome = await_healthy(
        Looks(
            alive=lambda: launcher.alive(runs_at),
            status=lambda: stores.status.read(spec.name),
            last_words=lambda: launcher.last_words(runs_at),
        ),
        after=after,
        seconds=resource.healthy_within,
        clock=time.monotonic,
        sleep=time.sleep,
    )
    if isinstance(outcome, NotHealthy):
        if outcome.error:
            mark_error(context.instance, context.run_id, outcome.error, after)
        raise _failure(outcome, runs_at, launcher.log_tail(runs_at))
    _report(context, runs_at, outcome.status)


def _refuse_if_paused(spec: StreamSpec, stores: Stores) -> None:
    pause = stores.control.read().pause
    if pause:
        raise dg.Failure(
            f"{spec.name} is paused by {pause.by} since {pause.since} ({pause.reason}). "
            f"Resume it first: ingest-platform stream resume {spec.name}",
            allow_retries=False,
        )


def _failure(outcome: NotHealthy, runs_at: RunsAt, tail: str) -> dg.Failure:
    error = outcome.error
    why = f": {error.kind}: {error.message}\nremedy: {error.remedy}" if error else ""
    return dg.Failure(
        f"{outcome.reason}{why}\nlog: {runs_at.log}\n{tail}",
        metadata={
            "log": dg.MetadataValue.path(runs_at.log),
            "tail": dg.MetadataValue.md(f"```\n{tail}\n```"),
        },
        allow_retries=False,
    )


def _report(context: dg.OpExecutionContext, runs_at: RunsAt, status: Status) -> None:
    context.log.info(f"Generation {status.generation} is healthy on {status.runs_at.host}.")
    context.add_output_metadata(
        {
            "generation": status.generation,
            "host": status.runs_at.host,
            "pid": status.runs_at.pid,
            "log": runs_at.log,
            "session": status.session,
        }
    )
