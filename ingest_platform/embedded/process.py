"""A child process that cannot outlive its parent, with a log file and a bounded stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from ingest_platform.errors import ServiceStartError

_TAIL_BYTES = 3000
_POLL_SECONDS = 0.1

# Runs in the child before the real program: asks the kernel to kill it with its parent, looks
# whether the parent is still there (it may have died before the request), and becomes the program.
# Not a preexec_fn: Python code between fork and exec can deadlock in a threaded parent.
_DIE_WITH_PARENT = """
import ctypes, os, sys
PR_SET_PDEATHSIG, SIGKILL = 1, 9
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""

# The kernel's "parent" is the thread that forked: a child of a short-lived thread would be killed
# when that thread ends. This one lives as long as the process.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


@dataclass(frozen=True)
class ChildProcess:
    """A running child, leader of a process group of its own.

    Attributes:
        name: For messages, such as `Kafka broker`.
        popen: The handle.
        log: File with all that it printed, this and earlier runs.
    """

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        """Process id, and id of its group."""
        return self.popen.pid

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None

    def stop(self, grace: float = 10.0) -> None:
        """End it and its group: SIGTERM, and SIGKILL after `grace` seconds. Idempotent."""
        if self.is_running():
            self.signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(grace)
        # Also when the leader ended by itself: members of its group may still run.
        self.signal(signal.SIGKILL)
        self.popen.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; nothing happens if it is gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def log_tail(self) -> str:
        """The last 3 kB of the log."""
        with self.log.open("rb") as f:
            f.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            return f.read().decode(errors="replace").strip()


def spawn(
    command: Sequence[str],
    *,
    name: str,
    log: Path,
    env: Mapping[str, str] | None = None,
) -> ChildProcess:
    """Start a program in a session of its own, so that Ctrl-C reaches only the parent.

    Args:
        command: Program and arguments.
        name: For messages.
        log: Gets stdout and stderr, appended.
        env: The whole environment of the child; the parent's if not given.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    shim = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid())]

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen(
                [*shim, *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                start_new_session=True,
            )

    return ChildProcess(name, _spawner.submit(start).result(), log)


class NotYetHealthyError(Exception):
    """A health check's answer while the service is still starting."""


def wait_until_healthy(
    child: ChildProcess, check: Callable[[], None], *, where: str, deadline: float
) -> None:
    """Repeat `check` until it stops raising NotYetHealthyError.

    Stops the child before it raises, so that a failed start leaves nothing behind.

    Args:
        child: Its early end cuts the wait short.
        check: Returns if the service answers.
        where: Address, for the message.
        deadline: In seconds from now.

    Raises:
        ServiceStartError: The child ended, or did not answer in time; with the end of its log.
    """

    def attempt() -> None:
        if not child.is_running():
            raise _start_error(child, f"ended with exit code {child.popen.returncode}", where)
        check()

    try:
        Retrying(
            retry=retry_if_exception_type(NotYetHealthyError),
            stop=stop_after_delay(deadline),
            wait=wait_fixed(_POLL_SECONDS),
        )(attempt)
    except RetryError as e:
        child.stop()
        reason = f"did not answer within {deadline:g} s ({e.last_attempt.exception()})"
        raise _start_error(child, reason, where) from e
    except BaseException:
        child.stop()
        raise


def _start_error(child: ChildProcess, reason: str, where: str) -> ServiceStartError:
    return ServiceStartError(
        f"the {child.name} {reason}; the end of its log:\n{child.log_tail()}",
        where=f"{where}, log {child.log}",
        remedy="read the log; if its data folder is damaged, remove it (`make clean-demo`) and "
        "start again",
    )
