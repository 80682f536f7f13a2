"""A run's maintenance driver: a process or pod of its own, which reports through Dagster Pipes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import dagster as dg
from pydantic import Field

from ingest_platform.adapters import log_files
from ingest_platform.adapters.launchers import on_kubernetes
from ingest_platform.components.maintenance_pod import POD_COMMAND, run_in_pod
from ingest_platform.components.maintenance_run import Results, Table, refuse_failure
from ingest_platform.embedded.process import ChildProcess, spawn

DRIVER = (sys.executable, "-m", "ingest_platform.drivers.maintenance")

# For the driver and its JVM to end by themselves; then they are killed, which is safe too.
_GRACE_SECONDS = 20.0


class MaintenanceDriver(dg.ConfigurableResource):
    """How maintenance drivers are started: where the drivers of the tables' streams are, too."""

    command: list[str] = Field(
        default=list(DRIVER), description="Of a process: called with ACTION NAME=PATH..."
    )
    pod_command: list[str] = Field(
        default=list(POD_COMMAND), description="The same in the image, for a Kubernetes Job."
    )

    def maintain(
        self,
        context: dg.AssetExecutionContext,
        action: str,
        tables: Sequence[Table],
        logs: Path,
        timeout: timedelta,
    ) -> Results:
        """Run the driver for these tables, and pass on what it reports of each.

        It is a child of the run, or a Job if the first table's stream has its drivers on
        Kubernetes. It cannot outlive the run: it is ended when the run is cancelled or takes too
        long; and if the run's own process is killed by the kernel, or by the Job's deadline.

        Args:
            context: Of the run.
            action: `compact` or `vacuum`.
            tables: Which.
            logs: Folder for the logs of a child.
            timeout: The driver is ended after it. Dagster's own limit is a tag of the schedule's
                job, so it does not bind a run that a person starts from the graph.

        Raises:
            dagster.Failure: A table failed, and the others were maintained nevertheless; or the
                driver took too long, and what it had committed stays.
        """
        if on_kubernetes(tables[0].spec, os.environ):
            return run_in_pod(context, [*self.pod_command, action], tables, logs.name, timeout)
        return self._run_here(context, action, tables, logs, timeout)

    def _run_here(
        self,
        context: dg.AssetExecutionContext,
        action: str,
        tables: Sequence[Table],
        logs: Path,
        timeout: timedelta,
    ) -> Results:
        log_file = log_files.begin(logs)
        with dg.open_pipes_session(
            context, dg.PipesTempFileContextInjector(), dg.PipesTempFileMessageReader()
        ) as session:
            targets = [f"{table.spec.name}={table.path}" for table in tables]
            command = [*self.command, action, *targets, "--log-dir", str(logs)]
            env = {**os.environ, **session.get_bootstrap_env_vars()}
            child = spawn(command, name="maintenance driver", log=log_file, env=env)
            context.log.info(f"Driver of process {child.pid}, log {log_file}")
            code = _wait(child, timeout)
        yield from session.get_results(implicit_materializations=False)
        refuse_failure(code, timeout, child.log_tail(), dg.MetadataValue.path(str(log_file)))


def _wait(child: ChildProcess, timeout: timedelta) -> int | None:
    """The driver's exit code; None if it took too long.

    However the wait ends, an interrupt of the run included, driver and JVM are gone then.
    """
    try:
        return child.popen.wait(timeout.total_seconds())
    except subprocess.TimeoutExpired:
        return None
    finally:
        child.stop(_GRACE_SECONDS)
