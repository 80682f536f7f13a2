"""No orphans: a service ends with whoever started it, however that one ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from ingest_platform.embedded.folder import claim
from ingest_platform.embedded.process import (
    NotYetHealthyError,
    spawn,
    wait_until_healthy,
)
from ingest_platform.errors import ServiceStartError

SLEEPER = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-S",
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\n"
    "time.sleep(600)",
]


def until(condition: Callable[[], bool], deadline: float = 20.0) -> None:
    Retrying(
        retry=retry_if_result(lambda true: not true),
        stop=stop_after_delay(deadline),
        wait=wait_fixed(0.02),
    )(condition)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_killed_parent_takes_its_child_along(tmp_path: Path) -> None:
    """Nobody runs any clean-up after kill -9 or the OOM killer; the kernel has to."""
    program = (
        "from pathlib import Path\n"
        "from ingest_platform.embedded.process import spawn\n"
        f"child = spawn({SLEEPER!r}, name='s', log=Path({str(tmp_path / 'log')!r}))\n"
        "print(child.pid, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    until(lambda: gone(pid))


def test_the_end_of_the_calling_thread_is_not_the_end_of_the_child(tmp_path: Path) -> None:
    """The kernel's request names a thread; Dagster starts things from threads that end."""
    children = []
    log = tmp_path / "log"
    thread = threading.Thread(target=lambda: children.append(spawn(SLEEPER, name="s", log=log)))
    thread.start()
    thread.join()
    [child] = children
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            child.popen.wait(0.5)
    finally:
        child.stop(grace=1)


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    child = spawn(STUBBORN, name="s", log=tmp_path / "log")
    until(lambda: "up" in child.log_tail())
    child.stop(grace=0.2)
    assert child.popen.returncode == -signal.SIGKILL
    child.stop()


def test_a_start_that_fails_shows_the_log(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such setting: flux')"]
    child = spawn(command, name="flux server", log=tmp_path / "log")

    def never() -> None:
        raise NotYetHealthyError("refused")

    with pytest.raises(ServiceStartError, match="exit code 1") as caught:
        wait_until_healthy(child, never, where="here:1", deadline=20)
    assert "no such setting: flux" in str(caught.value)
    assert "flux server" in str(caught.value)


def test_a_start_that_hangs_is_ended(tmp_path: Path) -> None:
    child = spawn(SLEEPER, name="s", log=tmp_path / "log")

    def never() -> None:
        raise NotYetHealthyError("connection refused")

    with pytest.raises(ServiceStartError, match=r"within 0\.3 s \(connection refused"):
        wait_until_healthy(child, never, where="here:1", deadline=0.3)
    assert not child.is_running()


def test_a_data_folder_has_one_user(tmp_path: Path) -> None:
    """Two brokers on one folder would destroy each other's log."""
    with (
        claim(tmp_path, service="broker", owner_pid=os.getpid()),
        pytest.raises(ServiceStartError, match=f"in use by process {os.getpid()}"),
    ):
        claim(tmp_path, service="broker", owner_pid=1)
    claim(tmp_path, service="broker", owner_pid=os.getpid()).close()


def test_sockets_of_the_parent_are_not_inherited(tmp_path: Path) -> None:
    """A child that holds a parent's port would keep the next start from taking it."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        child = spawn(SLEEPER, name="s", log=tmp_path / "log")
        port = s.getsockname()[1]
    try:
        with socket.socket() as again:
            again.bind(("127.0.0.1", port))
    finally:
        child.stop(grace=1)
