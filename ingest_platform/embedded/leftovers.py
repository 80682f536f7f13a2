"""Find and end what a demo started, and see to it when the demo itself cannot.

Every process that a demo starts carries the demo's folder in its environment, and so do all
processes that those start: `dagster dev`, its code servers and runs, and the drivers, which are
detached from everyone by design.

Run as a script it is the watchdog: `python -I -S leftovers.py FOLDER` waits for the end of its
standard input, which is the end of the demo, however it ends, and then ends what is left. It runs
without site-packages, so this file imports the standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

VARIABLE = "INGEST_DEMO_OWNER"
_PROC = Path("/proc")
_ROUNDS = 50
_PAUSE_SECONDS = 0.1


def owned_by(folder: Path) -> list[int]:
    """Pids of the live processes that the demo in `folder` started; not the caller's own."""
    mark = f"{VARIABLE}={folder}".encode()
    return [pid for pid in _pids() if pid != os.getpid() and _carries(pid, mark)]


def end_all(folder: Path) -> int:
    """SIGKILL whatever the demo in `folder` started, until nothing is left; how many there were.

    A driver that is killed so repeats its last batch at the next start, without loss or doubling.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS):  # again, since a process may have started another one meanwhile
        pids = owned_by(folder)
        if not pids:
            break
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended.update(pids)
        time.sleep(_PAUSE_SECONDS)
    return len(ended)


def _pids() -> Iterator[int]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def _carries(pid: int, mark: bytes) -> bool:
    """Whether the process was started with the mark; a zombie has no environment any more."""
    try:
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def main() -> int:
    """Wait for the demo's end, then clean up."""
    # A terminal that is closed, or an impatient Ctrl-C, must not take the watchdog along.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while sys.stdin.buffer.read(1):
        pass
    ended = end_all(Path(sys.argv[1]))
    if ended:
        sys.stderr.write(f"the demo left {ended} processes behind; they were ended\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
