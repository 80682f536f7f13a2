"""Nothing of a demo stays behind, however it ends, and nothing else is ended by that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ingest_platform.embedded.leftovers import VARIABLE, end_all, owned_by

SLEEP = "import time; print('up', flush=True); time.sleep(300)"
# A demo in small: a detached process with its mark, a watchdog, and then it is killed.
DEMO = """
import os, subprocess, sys, time
from pathlib import Path
from ingest_platform.embedded.leftovers import VARIABLE
from ingest_platform.embedded.watchdog import Watchdog
folder = Path(sys.argv[1])
watchdog = Watchdog(folder)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"],
    env={**os.environ, VARIABLE: str(folder)}, start_new_session=True)
print(watchdog.pid, child.pid, flush=True)
time.sleep(300)
"""


def until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def sleeper(owner: Path | None) -> subprocess.Popen[str]:
    env = {**os.environ, VARIABLE: str(owner)} if owner else dict(os.environ)
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEP], env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_only_the_folders_own_processes_are_ended(tmp_path):
    """Two demos in two folders, and the user's shell, must not be taken for one another."""
    mine, other, foreign = sleeper(tmp_path / "a"), sleeper(tmp_path / "ab"), sleeper(None)
    try:
        assert owned_by(tmp_path / "a") == [mine.pid]
        assert end_all(tmp_path / "a") == 1
        assert mine.wait(10) == -signal.SIGKILL
        assert other.poll() is None
        assert foreign.poll() is None
        assert end_all(tmp_path / "a") == 0
    finally:
        for process in (mine, other, foreign):
            process.kill()
            process.wait()


def test_the_watchdog_ends_the_rest_when_the_demo_is_killed(tmp_path):
    """SIGKILL and the out-of-memory killer leave no time for an orderly end."""
    demo = subprocess.Popen(
        [sys.executable, "-c", DEMO, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert demo.stdout is not None
    watchdog, child = map(int, demo.stdout.readline().split())
    demo.stdout.close()
    os.kill(watchdog, signal.SIGTERM)  # a closed terminal must not take it along
    assert not gone(watchdog)
    demo.kill()
    demo.wait()
    assert until(lambda: gone(child))
    assert until(lambda: gone(watchdog))
