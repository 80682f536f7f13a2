"""The Spark job of a repair, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ingest_platform import errors
from ingest_platform.adapters import log_files, termination
from ingest_platform.adapters.launcher import Launch
from ingest_platform.errors import IngestError, ServiceStartError

_JOB = (sys.executable, "-m", "ingest_platform.drivers.repair")
_TAIL_LINES = 5


def removal_process(launch: Launch) -> Callable[[int], None]:
    """A function that runs the job under a lease generation, and waits for its end.

    Its output goes to `repair/driver.log` in the folder of the stream's logs.
    """

    def run(generation: int) -> None:
        log = log_files.begin(launch.log_dir / "repair")
        error_file = log.with_name(log_files.ERROR)
        arguments = [str(launch.spec_path), "--name", launch.name, "--generation", str(generation)]
        with log.open("ab") as output:
            done = subprocess.run(
                [*_JOB, *arguments],
                env={**launch.env, termination.VARIABLE: str(error_file)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise _error(done.returncode, log, error_file)

    return run


def _error(code: int, log: Path, error_file: Path) -> IngestError:
    """The job's own error where it left one."""
    told = termination.read_last_words(error_file)
    kind = getattr(errors, told.kind, None) if told else None
    if told and isinstance(kind, type) and issubclass(kind, IngestError):
        return kind(told.message, where=f"log {log}", remedy=told.remedy)
    tail = " | ".join(log_files.tail(log, _TAIL_LINES).splitlines())
    return ServiceStartError(
        f"the repair's Spark job ended with code {code}: {tail}",
        where=f"log {log}",
        remedy="read the log; `ingest-platform repair apply` goes on where it was left",
    )
