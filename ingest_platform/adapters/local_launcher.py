"""Drivers as processes of this host, detached from whoever launched them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ingest_platform.adapters import detach, log_files, termination
from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.processes import (
    descendants,
    is_java,
    session_members,
    started_ticks,
)
from ingest_platform.errors import ServiceStartError
from ingest_platform.model.status import ErrorReport, RunsAt

DRIVER = (sys.executable, "-m", "ingest_platform.drivers.stream")
_SPAWN_SECONDS = 30


class LocalLauncher:
    """A `Launcher` on this host.

    Each driver leads a session of its own, so that neither Ctrl-C in a terminal nor a reload of
    Dagster's code server reaches it, and its JVM can be ended with it.
    """

    def __init__(self, command: Sequence[str] = DRIVER) -> None:
        self._command = tuple(command)

    def launch(self, launch: Launch) -> RunsAt:
        """Start `COMMAND <spec path> --name NAME`, its output in `<log_dir>/driver.log`.

        The driver finds the path of its log in `INGEST_LOG_FILE`, and in `INGEST_ERROR_FILE` where
        to leave the error that it ends with.
        """
        log = log_files.begin(launch.log_dir)
        pid = self._spawn(
            [*self._command, str(launch.spec_path), *launch.arguments],
            log,
            {
                **launch.env,
                "INGEST_LOG_FILE": str(log),
                termination.VARIABLE: str(log.with_name(log_files.ERROR)),
            },
        )
        return RunsAt(
            launcher="local",
            host=socket.gethostname(),
            pid=pid,
            started_ticks=started_ticks(pid) or 0.0,  # 0: it has ended already
            log=str(log),
        )

    def alive(self, runs_at: RunsAt) -> bool | None:
        """By pid and start time; None for a driver of another host."""
        if not _here(runs_at):
            return None
        return self._leads(runs_at)

    def drain(self, runs_at: RunsAt) -> bool:
        """SIGTERM to the driver itself: its JVM must live until the batch is committed."""
        if not self.alive(runs_at):
            return False
        with suppress(ProcessLookupError):
            os.kill(runs_at.pid, signal.SIGTERM)
        return True

    def kill(self, runs_at: RunsAt) -> bool:
        """SIGKILL to the driver, its JVM and its workers, also when only those are left."""
        victims = self._processes(runs_at)
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(victims)

    def dump_threads(self, runs_at: RunsAt) -> bool:
        """SIGQUIT, which a JVM answers with a thread dump; it would end any other process."""
        jvms = [pid for pid in self._processes(runs_at) if is_java(pid)]
        for pid in jvms:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)
        return bool(jvms)

    def last_words(self, runs_at: RunsAt) -> ErrorReport | None:
        """From the file beside the log."""
        if not runs_at.log or not _here(runs_at):
            return None
        return termination.read_last_words(Path(runs_at.log).with_name(log_files.ERROR))

    def log_tail(self, runs_at: RunsAt, lines: int = 40) -> str:
        """The end of the log file that `launch` named."""
        here = runs_at.log and _here(runs_at)
        return log_files.tail(Path(runs_at.log), lines) if here else ""

    def _processes(self, runs_at: RunsAt) -> list[int]:
        """The driver, its JVM and its workers, as far as they are left."""
        if not _here(runs_at) or not runs_at.started_ticks:
            return []
        leads = self._leads(runs_at)
        if not leads and started_ticks(runs_at.pid) is not None:
            return []  # the pid was given to another process: nothing of the driver is left
        found = session_members(runs_at.pid, since_ticks=runs_at.started_ticks)
        if leads and runs_at.pid not in found:
            return [runs_at.pid, *descendants(runs_at.pid)]  # started by hand in a terminal
        return found

    @staticmethod
    def _leads(runs_at: RunsAt) -> bool:
        ticks = started_ticks(runs_at.pid) if runs_at.pid > 0 else None
        return ticks is not None and ticks == runs_at.started_ticks

    @staticmethod
    def _spawn(command: list[str], log: Path, env: dict[str, str]) -> int:
        helper = [sys.executable, "-I", "-S", str(detach.__file__), str(log), *command]
        done = subprocess.run(
            helper, env=env, capture_output=True, text=True, timeout=_SPAWN_SECONDS, check=False
        )
        if done.returncode:
            raise ServiceStartError(
                f"the driver's process could not be created: {done.stderr.strip()[-500:]}",
                where=" ".join(command[:3]),
                remedy="check that the Python environment is whole: uv sync",
            )
        return int(done.stdout)


def _here(runs_at: RunsAt) -> bool:
    return runs_at.launcher == "local" and runs_at.host == socket.gethostname()
