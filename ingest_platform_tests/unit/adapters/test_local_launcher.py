"""Drivers as detached processes: what only those can get wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ingest_platform.adapters import log_files
from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import started_ticks, this_process
from ingest_platform.errors import ServiceStartError
from ingest_platform.model.status import RunsAt

# Stands in for a driver: it tells through a pipe that it is up, has a child as a driver has its
# JVM, and goes on until asked to drain.
_DRIVER = """
import os, signal, subprocess, sys, threading
drained = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: drained.set())
jvm = subprocess.Popen(["sleep", "1000"])
print("up", *sys.argv[1:], os.environ["INGEST_LOG_FILE"], flush=True)
with open(os.environ["UP"], "w") as up:
    up.write(f"{os.getppid()} {os.getsid(0)} {jvm.pid}")
drained.wait()
print("drained", flush=True)
jvm.kill()
jvm.wait()
"""


@pytest.fixture
def launched(tmp_path):
    """A running stand-in: `(launcher, where it runs, its child's pid)`; ended afterwards."""
    launcher = LocalLauncher([sys.executable, "-c", _DRIVER])
    up = tmp_path / "up"
    os.mkfifo(up)
    launch = Launch(
        spec_path=Path("/defs/clicks/defs.yaml"),
        name="clicks",
        log_dir=tmp_path / "logs",
        env={**os.environ, "UP": str(up)},
    )
    runs_at = launcher.launch(launch)
    parent, session, jvm = (int(word) for word in up.read_text().split())  # blocks until it is up
    assert parent != os.getpid()
    assert session == runs_at.pid
    yield launcher, runs_at, jvm
    launcher.kill(runs_at)


def _ended(pid: int) -> None:
    """Wait for the end of a process that is not one's child."""
    try:
        psutil.Process(pid).wait(timeout=20)
    except psutil.NoSuchProcess:
        return


def test_kill_sweeps_what_a_dead_driver_left_behind(launched):
    """A JVM that outlives its driver holds memory, and may be in the middle of a commit."""
    launcher, runs_at, jvm = launched
    os.kill(runs_at.pid, 9)
    _ended(runs_at.pid)
    assert not launcher.alive(runs_at)
    assert started_ticks(jvm) is not None
    assert launcher.kill(runs_at)
    _ended(jvm)


def test_reused_pid_is_not_the_driver(launched):
    """Signalling by pid alone would end a stranger's process after a reboot."""
    launcher, runs_at, _ = launched
    stranger = dataclasses.replace(runs_at, started_ticks=runs_at.started_ticks - 1)
    assert launcher.alive(stranger) is False
    assert not launcher.drain(stranger)
    assert not launcher.kill(stranger)
    assert launcher.alive(runs_at)


def test_driver_of_another_host_is_unknown(launched):
    launcher, runs_at, _ = launched
    elsewhere = dataclasses.replace(runs_at, host="elsewhere")
    assert launcher.alive(elsewhere) is None
    assert not launcher.drain(elsewhere)
    assert not launcher.kill(elsewhere)
    assert launcher.log_tail(elsewhere) == ""


def test_driver_survives_its_launcher(tmp_path):
    """The Dagster run that launches a driver ends at once, and Ctrl-C reaches only its session."""
    up = tmp_path / "up"
    os.mkfifo(up)
    code = (
        "import json, os, sys, dataclasses; from pathlib import Path\n"
        "from ingest_platform.adapters.local_launcher import LocalLauncher\n"
        "from ingest_platform.adapters.launcher import Launch\n"
        "launcher = LocalLauncher([sys.executable, '-c', sys.argv[1]])\n"
        "launch = Launch(Path('/d.yaml'), 'clicks', Path(sys.argv[2]), dict(os.environ))\n"
        "print(json.dumps(dataclasses.asdict(launcher.launch(launch))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, _DRIVER, str(tmp_path / "logs")],
        env={**os.environ, "UP": str(up)},
        capture_output=True,
        check=True,
    )
    runs_at = RunsAt(**json.loads(done.stdout))
    up.read_text()
    launcher = LocalLauncher()
    assert launcher.alive(runs_at)
    launcher.kill(runs_at)
    _ended(runs_at.pid)
    assert not launcher.alive(runs_at)


def test_driver_that_ends_at_once_is_dead_and_leaves_its_words(tmp_path):
    launcher = LocalLauncher([sys.executable, "-c", "raise SystemExit('no such topic')"])
    launch = Launch(Path("/d.yaml"), "clicks", tmp_path, dict(os.environ))
    runs_at = launcher.launch(launch)
    _ended(runs_at.pid)
    assert launcher.alive(runs_at) is False
    assert launcher.log_tail(runs_at) == "no such topic"


def test_last_words_reach_the_launcher_and_are_gone_at_the_next_launch(tmp_path):
    code = (
        "import os; from datetime import UTC, datetime\n"
        "from ingest_platform.adapters.termination import leave_last_words\n"
        "from ingest_platform.errors import TopicMissingError\n"
        "error = TopicMissingError('no topic', remedy='create it')\n"
        "leave_last_words(error, os.environ, datetime.now(UTC))\n"
    )
    launch = Launch(Path("/d.yaml"), "clicks", tmp_path, dict(os.environ))
    first = LocalLauncher([sys.executable, "-c", code])
    runs_at = first.launch(launch)
    _ended(runs_at.pid)
    words = first.last_words(runs_at)
    assert words is not None
    assert (words.kind, words.remedy, words.retryable) == ("TopicMissingError", "create it", False)
    second = LocalLauncher([sys.executable, "-c", "pass"])
    assert second.last_words(second.launch(launch)) is None


def test_impossible_command_is_one_clear_error(tmp_path):
    launch = Launch(Path("/d.yaml"), "clicks", tmp_path, dict(os.environ))
    with pytest.raises(ServiceStartError, match=r"could not be created.*No such file"):
        LocalLauncher(["/no/such/python"]).launch(launch)


def test_secrets_of_the_environment_stay_out_of_repr(tmp_path):
    assert "s3cr3t" not in repr(Launch(tmp_path, "clicks", tmp_path, {"PASSWORD": "s3cr3t"}))


def test_this_process_is_alive():
    assert LocalLauncher().alive(this_process())


def test_each_launch_has_its_own_log_and_old_ones_are_bounded(tmp_path):
    for number in range(15):
        log_files.begin(tmp_path).write_text(f"launch {number}\n")
    kept = sorted(tmp_path.iterdir(), key=lambda p: int(p.suffix.replace(".log", "0")[1:] or 0))
    assert len(kept) == log_files.KEPT + 1
    assert (tmp_path / "driver.log").read_text() == "launch 14\n"
    assert (tmp_path / "driver.log.1").read_text() == "launch 13\n"
    assert (tmp_path / "driver.log.9").read_text() == "launch 5\n"


def test_growing_log_is_rotated_under_its_writer(tmp_path):
    log = log_files.begin(tmp_path)
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        assert not log_files.bound(tmp_path, max_bytes=100)
        writer.write(b"y")
        assert log_files.bound(tmp_path, max_bytes=100)
        writer.write(b"after")
    assert log.read_bytes() == b"after"
    assert (tmp_path / "driver.log.1").read_bytes() == b"x" * 100 + b"y"


def test_tail_of_a_missing_log_is_empty(tmp_path):
    assert log_files.tail(tmp_path / "none") == ""
    assert not log_files.bound(tmp_path)
