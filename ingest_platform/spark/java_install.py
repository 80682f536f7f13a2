"""Install Java with the system's package manager, where this process may."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence

from ingest_platform.errors import JavaNotFoundError
from ingest_platform.spark.java import Java, find_java, install_command

_SECONDS = 900

# Asked before anything is downloaded: fresh containers have no package lists.
_REFRESH = {"apt-get": ("apt-get", "update")}
_MANAGERS = {"apt-get", "dnf", "apk"}

Run = Callable[[Sequence[str]], int]


def find_or_install_java(
    env: Mapping[str, str],
    *,
    say: Callable[[str], None],
    uid: int,
    run: Run | None = None,
    find: Callable[[Mapping[str, str]], Java] = find_java,
) -> Java:
    """A fitting Java; installed first if there is none, if this is root and the manager is known.

    Args:
        env: Where to look.
        say: Told before something is installed.
        uid: Of this process; only root installs, and nobody is asked for a password.
        run: Runs a command and returns its exit code.
        find: Looks for Java.

    Raises:
        JavaNotFoundError: There is none and it could not be installed; the remedy is one line.
    """
    try:
        return find(env)
    except JavaNotFoundError:
        command = install_command().split()
        if uid != 0 or command[0] not in _MANAGERS:
            raise
    say(f"no Java 17 or newer: running `{' '.join(command)}`")
    run = run or _run
    refresh = _REFRESH.get(command[0])
    if refresh is not None:
        run(refresh)
    run(command)
    return find(env)  # whether it worked shows here, with the same message if it did not


def _run(command: Sequence[str]) -> int:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 1
    return done.returncode
