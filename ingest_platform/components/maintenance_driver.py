"""A run's maintenance driver: a process of its own, which reports through Dagster Pipes."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import dagster as dg
from pydantic import Field

from ingest_platform.adapters import log_files
from ingest_platform.embedded.process import ChildProcess, spawn

DRIVER = (sys.executable, "-m", "ingest_platform.drivers.maintenance")

# For the driver and its JVM to end by themselves; then they are killed, which is safe too.
_GRACE_SECONDS = 20.0


class MaintenanceDriver(dg.ConfigurableResource):
    """How maintenance drivers are started: as children of the run that they serve."""

    command: list[str] = Field(
        default=list(DRIVER), description="Called with compact or vacuum, and NAME=PATH..."
    )

    def maintain(
        self,
        context: dg.AssetExecutionContext,
        action: str,
        tables: Mapping[str, Path],
        logs: Path,
        timeout: timedelta,
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        """Run the driver for these tables, and pass on what it reports of each.

        The driver cannot outlive the run: it is ended when the run is cancelled or takes too long,
        and by the kernel if the run's own process is killed.

        Args:
            context: Of the run.
            action: `compact` or `vacuum`.
            tables: The file that declares the stream, by its name.
            logs: Folder for the driver's logs.
            timeout: The driver is ended after it. Dagster's own limit is a tag of the schedule's
                job, so it does not bind a run that a person starts from the graph.

        Raises:
            dagster.Failure: A table failed, and the others were maintained nevertheless; or the
                driver took too long, and what it had committed stays.
        """
        log_file = log_files.begin(logs)
        with dg.open_pipes_session(
            context, dg.PipesTempFileContextInjector(), dg.PipesTempFileMessageReader()
        ) as session:
            targets = [f"{name}={path}" for name, path in tables.items()]
            command = [*self.command, action, *targets, "--log-dir", str(logs)]
            env = {**os.environ, **session.get_bootstrap_env_vars()}
            child = spawn(command, name="maintenance driver", log=log_file, env=env)
            context.log.info(f"Driver of process {child.pid}, log {log_file}")
            code = _wait(child, timeout)
        yield from session.get_results(implicit_materializations=False)
        if code != 0:
            end = (
                f"was ended after {timeout}, the tables' `maintenance.timeout`"
                if code is None
                else f"ended with exit code {code}"
            )
            raise dg.Failure(
                f"The maintenance driver {end}; the end of its log:\n{child.log_tail()}",
                metadata={"log": dg.MetadataValue.path(str(log_file))},
                allow_retries=False,
            )


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
