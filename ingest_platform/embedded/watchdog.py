"""A process that outlives the demo by a moment, and ends what the demo could not."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Self

from ingest_platform.embedded import leftovers
from ingest_platform.errors import ServiceStartError

_SECONDS = 15


class Watchdog:
    """Runs `leftovers.py` for a folder.

    It holds the reading end of a pipe whose writing end only this process has: the kernel closes
    that one whatever ends this process, SIGKILL and the out-of-memory killer included.
    """

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-I", "-S", str(leftovers.__file__), str(folder)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={},  # without the demo's mark, or it would end itself
            start_new_session=True,
        )
        # Until it says that it is ready, a stray signal could end it unnoticed.
        with self._process.stdout or nullcontext() as stdout:
            if stdout is None or not stdout.readline():
                raise ServiceStartError(
                    "the demo's watchdog did not start",
                    where=str(leftovers.__file__),
                    remedy="check that the Python environment is whole: uv sync",
                )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def close(self) -> None:
        """Let it clean up now, and wait until it has. Idempotent."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS)

    def __enter__(self) -> Self:
        """The running watchdog; leaving the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
