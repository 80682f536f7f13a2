"""`ingest-platform demo` as a process, for tests of the demo and of the UI."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx

from ingest_platform.embedded.dagster_dev import DagsterDev, Materialization
from ingest_platform.embedded.leftovers import end_all, owned_by
from ingest_platform.embedded.process import ChildProcess, spawn

_URL = re.compile(r"(http://127\.0\.0\.1:\d+)/assets/clicks")
_POLL_SECONDS = 0.2


@dataclass
class DemoProcess:
    """A demo in `folder`, with free ports; leaving the block ends it if it still runs."""

    folder: Path
    popen: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls,
        folder: Path,
        *options: str,
        report_every: str = "10 seconds",
        compact_every: str = "5 minutes",
    ) -> Self:
        """Start it; its output goes to `<folder>.log`."""
        log = folder.with_name(f"{folder.name}.log")
        env = {
            **os.environ,
            "INGEST_DEMO_DIR": str(folder),
            "INGEST_REPORT_EVERY": report_every,
            "INGEST_COMPACT_EVERY": compact_every,
        }
        command = [sys.executable, "-m", "ingest_platform.cli", "demo", *options]
        log.unlink(missing_ok=True)
        # In a session of its own, as in another terminal. If the test run is killed, so is the
        # demo, and its watchdog cleans up.
        child = spawn(command, name="demo", log=log, env=env)
        return cls(folder, child.popen, log)

    @property
    def output(self) -> str:
        """What it has printed."""
        return self.log.read_text(errors="replace")

    def url(self, seconds: float = 180) -> str:
        """Of the UI, when it is up."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = _URL.search(self.output)
            if found:
                return found[1]
            assert self.popen.poll() is None, self.output
            time.sleep(_POLL_SECONDS)
        raise AssertionError(f"not up within {seconds} s:\n{self.output}")

    def wait_for_materializations(self, count: int, seconds: float = 240) -> None:
        """Until Dagster has reported the table so often."""
        self.wait_for("clicks", lambda found: len(found) >= count, seconds)

    def wait_for(
        self,
        asset: str,
        enough: Callable[[Sequence[Materialization]], bool],
        seconds: float = 240,
    ) -> Sequence[Materialization]:
        """What Dagster has reported of an asset, when that is enough."""
        dagster = DagsterDev(self.url(), ChildProcess("dagster dev", self.popen, self.log))
        deadline = time.monotonic() + seconds
        found: Sequence[Materialization] = ()
        while time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                found = dagster.materializations(asset, 0)
            if enough(found):
                return found
            assert self.popen.poll() is None, self.output
            time.sleep(_POLL_SECONDS * 5)
        raise AssertionError(f"{len(found)} materializations of {asset}:\n{self.output}")

    def processes(self) -> list[str]:
        """What still runs for this folder: pids and commands, the demo's own included."""
        marked = set(owned_by(self.folder))
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command and (int(entry.name) in marked or f"{self.folder}/" in f"{command}/"):
                    found.append(f"{entry.name} {command}")
        return found

    def wait_until_gone(self, seconds: float = 20) -> list[str]:
        """Wait until no process is left; those that are, if the time is up."""
        deadline = time.monotonic() + seconds
        while self.processes() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return self.processes()

    def interrupt(self, seconds: float = 120) -> int:
        """Ctrl-C, and the exit code."""
        self.popen.send_signal(signal.SIGINT)
        return self.popen.wait(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.interrupt()
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        end_all(self.folder)
