"""Memory and CPU of a process and all that it started, sampled in a thread."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
import psutil

PERIOD_SECONDS = 0.5

_GROWN_UP_SECONDS = 1.0


@dataclass(frozen=True)
class Usage:
    """One sample of the whole tree.

    Attributes:
        at: Seconds since 1970.
        rss: Resident bytes, summed over processes that live for a second already. Hadoop forks
            small commands (`chmod`); until such a child has become its program it shares all pages
            of the JVM, which would count twice.
        cpu_seconds: User and system, since the start, of all that ever belonged to the tree.
    """

    at: float
    rss: int
    cpu_seconds: float


class ProcessTree(threading.Thread):
    """Samples until closed. What a process used after its last sample is not seen."""

    def __init__(self, pid: int) -> None:
        super().__init__(name="process-tree", daemon=True)
        self._root = psutil.Process(pid)
        self._cpu: dict[tuple[int, float], float] = {}
        self._done = threading.Event()
        self.samples: list[Usage] = []

    def run(self) -> None:
        """Sample twice a second."""
        while not self._done.wait(PERIOD_SECONDS):
            self.samples.append(self._sample())

    def close(self) -> None:
        """Take a last sample and stop. Idempotent."""
        if self._done.is_set():
            return
        self._done.set()
        self.join(timeout=10)
        self.samples.append(self._sample())

    def java_pid(self) -> int:
        """Pid of the tree's JVM.

        Raises:
            LookupError: There is none.
        """
        for process in self._members():
            try:
                if process.name() == "java":
                    return process.pid
            except psutil.Error:
                continue
        raise LookupError(f"process {self._root.pid} has no JVM")

    def cpu_seconds_at(self, at: float) -> float:
        """CPU seconds used by the tree up to a time, between samples by proportion."""
        if not self.samples:
            return 0.0
        return float(
            np.interp(at, [s.at for s in self.samples], [s.cpu_seconds for s in self.samples])
        )

    def peak_rss(self) -> int:
        """Bytes."""
        return max((s.rss for s in self.samples), default=0)

    def _sample(self) -> Usage:
        rss, now = 0, time.time()
        for process in self._members():
            try:
                with process.oneshot():
                    times, born = process.cpu_times(), process.create_time()
                    if now - born >= _GROWN_UP_SECONDS:
                        rss += process.memory_info().rss
            except psutil.Error:
                continue  # ended meanwhile; what it had used stays booked
            self._cpu[process.pid, born] = times.user + times.system
        return Usage(now, rss, sum(self._cpu.values()))

    def _members(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return []
