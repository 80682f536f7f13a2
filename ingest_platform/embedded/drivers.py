"""The drivers that a demo's Dagster launched: detached from the demo, so they are looked for."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import started_ticks
from ingest_platform.embedded.leftovers import owned_by
from ingest_platform.model.status import RunsAt

# A driver obeys SIGTERM within 30 s.
_DRAIN_SECONDS = 30.0

_MODULES = b"ingest_platform.drivers."
_POLL_SECONDS = 0.1


def drivers_of(folder: Path) -> list[RunsAt]:
    """The live drivers below the demo in `folder`.

    Not from the status documents: a driver that was launched a second ago has none yet.
    """
    host = socket.gethostname()
    found: list[RunsAt] = []
    for pid in owned_by(folder):
        ticks = started_ticks(pid)
        if ticks is not None and _is_driver(pid):
            found.append(RunsAt(host=host, pid=pid, started_ticks=ticks))
    return found


def drain_all(folder: Path) -> int:
    """Let the drivers finish their batches and exit; kill what has not after 30 s.

    Returns:
        How many had to be killed.
    """
    launcher = LocalLauncher()
    drivers = drivers_of(folder)
    for driver in drivers:
        launcher.drain(driver)
    deadline = time.monotonic() + _DRAIN_SECONDS
    while any(launcher.alive(driver) for driver in drivers) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    late = sum(bool(launcher.alive(driver)) for driver in drivers)
    for driver in drivers:
        launcher.kill(driver)  # also a JVM that a driver left behind
    return late


def _is_driver(pid: int) -> bool:
    """Whether it is a driver itself: the leader of a session, as the launcher makes them."""
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return os.getsid(pid) == pid and any(part.startswith(_MODULES) for part in command)
    return False
