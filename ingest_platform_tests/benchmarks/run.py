"""One contender's process under observation, from start to a clean end."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ingest_platform.embedded.process import ChildProcess
from ingest_platform_tests.benchmarks.contender import Contender, Job
from ingest_platform_tests.benchmarks.process_tree import ProcessTree
from ingest_platform_tests.benchmarks.timeline import Timeline

DRAIN_SECONDS = 40.0


class ContenderFailedError(Exception):
    """It ended by itself or did not get on; the message holds the end of its log."""


@dataclass(frozen=True)
class Run:
    """A contender that runs.

    Attributes:
        started_at: Seconds since 1970, just before the process was made.
        child: The process.
        tree: Its memory and CPU.
        timeline: Its commits.
    """

    started_at: float
    child: ChildProcess
    tree: ProcessTree
    timeline: Timeline

    def records(self) -> int:
        """Records readable so far."""
        return sum(commit.records for commit in self.timeline.commits())

    def check(self) -> None:
        """Raise if the process has failed.

        Raises:
            ContenderFailedError: It has ended other than well.
        """
        code = self.child.popen.poll()
        if code:
            raise ContenderFailedError(
                f"{self.child.name} ended with exit code {code}:\n{self.child.log_tail()}"
            )

    def fail(self, reason: str) -> ContenderFailedError:
        """The error to raise for a run that does not get on."""
        return ContenderFailedError(f"{self.child.name} {reason}:\n{self.child.log_tail()}")


@contextmanager
def running(contender: Contender, job: Job) -> Iterator[Run]:
    """Start it; end it with the block: by draining it, or at once if the block was broken off."""
    job.folder.mkdir(parents=True)
    started_at = time.time()
    child = contender.start(job)
    tree = ProcessTree(child.pid)
    tree.start()
    try:
        yield Run(started_at, child, tree, contender.timeline(job))
    except BaseException:
        child.stop()
        raise
    else:
        # Sampled to here: what a contender needs for its end is none of its figures.
        tree.close()
        _end(child)
    finally:
        tree.close()


def _end(child: ChildProcess) -> None:
    """SIGTERM to the leader only: to the whole group it would kill the JVM under a drain."""
    if child.is_running():
        child.popen.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.popen.wait(DRAIN_SECONDS)
    child.stop()
