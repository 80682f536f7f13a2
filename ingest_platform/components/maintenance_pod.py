"""A maintenance driver as a Kubernetes Job, which reports through Dagster Pipes by its log."""

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import dagster as dg
from dagster_pipes import (
    PIPES_PROTOCOL_VERSION_FIELD,
    PipesDefaultMessageWriter,
    PipesParams,
)

from ingest_platform.adapters.launchers import spec_files
from ingest_platform.components.maintenance_run import Results, Table, refuse_failure

POD_COMMAND = ("tini", "--", "python", "-m", "ingest_platform.drivers.maintenance")

# The Job's own deadline is for a run whose process was killed; else the run ends its Job itself.
_OVERTIME = timedelta(minutes=2)
_TAIL_LINES = 40


class PodLogReader(dg.PipesMessageReader):
    """Finds the driver's messages among the lines of its pod's log."""

    @contextmanager
    def read_messages(self, handler: dg.PipesMessageHandler) -> Iterator[PipesParams]:
        """Have the driver write its messages to its standard output."""
        self._handler = handler
        yield {PipesDefaultMessageWriter.STDIO_KEY: PipesDefaultMessageWriter.STDOUT}

    def read(self, log: str) -> None:
        """Take over what the log holds; call once, when the pod has ended."""
        for line in log.splitlines():
            if PIPES_PROTOCOL_VERSION_FIELD not in line:
                continue
            try:
                message = json.loads(line)
            except ValueError:
                continue  # cut off by the pod's end
            self._handler.handle_message(message)

    def no_messages_debug_text(self) -> str:
        """For Dagster's warning when a driver has said nothing."""
        return "Looked for messages in the log of the driver's pod."


def run_in_pod(
    context: dg.AssetExecutionContext,
    command: Sequence[str],
    tables: Sequence[Table],
    name: str,
    timeout: timedelta,
) -> Results:
    """Run a Job for these tables, and pass on what it reports of each.

    Args:
        context: Of the run.
        command: Up to the action.
        tables: Which; the pod is as the first one's spec says, with the secrets of all.
        name: Of the round; part of the Job's name.
        timeout: The Job is ended after it.

    Raises:
        dagster.Failure: As `MaintenanceDriver.maintain`.
        IngestError: The cluster refuses, or does not answer; no image is named.
    """
    # The client takes a second to import: only those pay who need it.
    from ingest_platform.adapters.kubernetes import cluster, watched_job  # noqa: PLC0415
    from ingest_platform.adapters.kubernetes.launcher import refuse_large  # noqa: PLC0415
    from ingest_platform.adapters.kubernetes.manifests import (  # noqa: PLC0415
        LOG_FOLDER,
        SPEC_FOLDER,
        DriverJob,
    )
    from ingest_platform.adapters.kubernetes.settings import maintenance_pod  # noqa: PLC0415

    files = {
        f"{table.spec.name}/{file}": text
        for table in tables
        for file, text in spec_files(table.spec, table.path, os.environ).items()
    }
    refuse_large(files, name)
    pod = maintenance_pod([table.spec for table in tables], os.environ)
    targets = [f"{t.spec.name}={SPEC_FOLDER}/{t.spec.name}/{t.path.name}" for t in tables]
    reader = PodLogReader()
    with dg.open_pipes_session(context, dg.PipesEnvContextInjector(), reader) as session:
        environment = {**pod.environment, **session.get_bootstrap_env_vars()}
        driver = DriverJob(
            stream=name,
            suffix=uuid.uuid4().hex[:8],
            files=files,
            command=command,
            arguments=(*targets, "--log-dir", LOG_FOLDER),
            pod=replace(pod, environment=environment),
            deadline=round((timeout + _OVERTIME).total_seconds()),
        )
        job = watched_job.WatchedJob(cluster.connect(), driver)
        context.log.info(f"Driver in a Job, {job.runs_at.log}")
        code = None
        try:
            code = job.wait(timeout.total_seconds())
            log = job.log()
        finally:
            if code is None:  # also when the run is cancelled
                job.end()
        reader.read(log)
    yield from session.get_results(implicit_materializations=False)
    tail = "\n".join(log.splitlines()[-_TAIL_LINES:])
    refuse_failure(code, timeout, tail, dg.MetadataValue.text(job.runs_at.log))
