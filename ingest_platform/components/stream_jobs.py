"""The jobs of a stream, one for each thing that can be done to it; each run tells its reason."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg

from ingest_platform.components import actions, tags
from ingest_platform.components.launch_history import mark_worker
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.model.control import Pause
from ingest_platform.spec import StreamSpec
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.turnover import Patience

LAUNCHING = ("start", "restart")  # the jobs whose runs are launches
ORDERING = ("drain", "restart", "stop")  # those whose runs end a driver

_Body = Callable[[dg.OpExecutionContext, Reach, float], None]


class PauseConfig(dg.Config):
    """Who pauses the stream, and why: the supervisor shows both until it is resumed."""

    by: str = "the UI"
    reason: str = ""


def job_name(spec: StreamSpec, action: str) -> str:
    """Name of the job that does `action` to the stream."""
    return f"{spec.name}_{action}"


def stream_jobs(spec: StreamSpec, path: Path) -> list[dg.JobDefinition]:
    """The jobs start, drain, restart, stop, pause and resume of one stream."""
    name, patience = spec.name, spec.supervision.drain_within.total_seconds()

    def restart(context: dg.OpExecutionContext, reach: Reach, seconds: float) -> None:
        within = Patience(drain=patience, start=seconds)
        actions.restart_driver(context, reach, within, overlap=spec.supervision.overlap)

    def build(action: str, description: str, body: _Body) -> dg.JobDefinition:
        return _job(spec, action, description, _driver_op(spec, path, action, description, body))

    return [
        build(
            "start",
            f"Start the driver of {name}, unless it runs or the stream is paused.",
            actions.start_driver,
        ),
        build(
            "restart",
            f"Get a successor for the driver of {name} ready, let the driver finish its batch and "
            "exit, and the successor take over.",
            restart,
        ),
        build(
            "drain",
            f"Let the driver of {name} finish its batch and exit. The supervisor starts another "
            "one, unless the stream is paused.",
            lambda context, reach, _: actions.drain_driver(context, reach, patience),
        ),
        build(
            "stop",
            f"End the driver of {name} now, as a crash would: nothing is lost or doubled. The "
            "supervisor starts another one, unless the stream is paused.",
            lambda context, reach, _: actions.stop_driver(context, reach),
        ),
        _pause_job(spec, path),
        build(
            "resume",
            f"Take back the pause of {name}.",
            lambda _, reach, __: reach.stores.control.resume(),
        ),
    ]


def _driver_op(
    spec: StreamSpec, path: Path, action: str, description: str, body: _Body
) -> dg.OpDefinition:
    @dg.op(
        name=f"{spec.name}_{action}_driver",
        description=description,
        tags={"kind": "spark"},
    )
    def act(context: dg.OpExecutionContext, s3: S3Resource, launcher: LauncherResource) -> None:
        mark_worker(context.instance, context.run_id)
        reach = actions.reach_of(context, spec, path, s3, launcher)
        body(context, reach, launcher.healthy_within)

    return act


def _pause_job(spec: StreamSpec, path: Path) -> dg.JobDefinition:
    description = f"Let the driver of {spec.name} finish its batch, and keep it off until resumed."

    @dg.op(name=f"{spec.name}_pause_stream", description=description)
    def pause(
        context: dg.OpExecutionContext,
        config: PauseConfig,
        s3: S3Resource,
        launcher: LauncherResource,
    ) -> None:
        reach = actions.reach_of(context, spec, path, s3, launcher)
        since = reach.now().isoformat(timespec="seconds")
        reach.stores.control.pause(Pause(config.by, since, config.reason))

    return _job(spec, "pause", description, pause)


def _job(spec: StreamSpec, action: str, description: str, op: dg.OpDefinition) -> dg.JobDefinition:
    @dg.job(
        name=job_name(spec, action),
        description=description,
        tags={
            tags.STREAM: spec.name,
            tags.ACTION: action,
            "dagster/max_runtime": "900",
            "dagster/max_retries": "0",  # the supervisor repeats what is needed, with backoff
        },
        executor_def=dg.in_process_executor,
    )
    def run() -> None:
        op()

    return run
