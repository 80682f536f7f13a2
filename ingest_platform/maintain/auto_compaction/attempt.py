"""One attempt to compact a table, and the three places where it yields to DML.

    look at a fresh snapshot ── nothing due ──> idle
        │
    DML in flight? ──> yields at dequeue
        │
    run OPTIMIZE ── DML begins: its Spark jobs are cancelled ──> yields mid-flight
        │
    commit ── the LogStore finds a marker of DML ──> yields before the commit

The table is watched from before the first question to after the commit, so DML cannot slip in
between two of them. What remains is DML of another driver whose marker lands in the milliseconds
between the LogStore's look and its write: that DML meets an ordinary conflict.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, Protocol

from ingest_platform.maintain.auto_compaction.outcome import Outcome, Result

log = logging.getLogger(__name__)


class YieldedError(Exception):
    """Another commit was faster, so that this one was not made; `outcome` says whose or where."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome


class Why(StrEnum):
    """Who stopped an attempt."""

    DML = "dml"
    SHUTDOWN = "shutdown"


class Compactor(Protocol):
    """What an attempt needs of Spark and Delta."""

    def look(self, table: str) -> Any | None:
        """What is due, on a fresh snapshot; None if nothing is."""
        ...

    def run(self, table: str, due: Any, group: str) -> Result:
        """Compact it, with its Spark jobs in `group`.

        Raises:
            YieldedError: Another commit was faster.
            Exception: Whatever else went wrong, a cancelled job among it.
        """
        ...

    def cancel(self, group: str) -> None:
        """Cancel the group's Spark jobs, also those that have not begun. From any thread."""
        ...


class DmlWatch(Protocol):
    """What an attempt needs to know of DML."""

    def in_flight(self, table: str) -> bool:
        """Whether DML on `table` is announced now."""
        ...

    def watching(
        self, table: str, begun: Callable[[], None], gone: threading.Event
    ) -> AbstractContextManager[None]:
        """Have `begun` called, from any thread, when DML begins while the block runs.

        DML of this process does not go on before `gone` is set, within bounds.
        """
        ...


class Attempt:
    """One attempt; `stop` may come from any thread at any time, also before it runs."""

    def __init__(self, table: str, group: str, compactor: Compactor, dml: DmlWatch) -> None:
        self.table = table
        self._group, self._compactor, self._dml = group, compactor, dml
        self._stopped: Why | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()

    def stop(self, why: Why) -> None:
        """Make it end soon without a commit, unless its commit is being made."""
        with self._lock:
            if self._stopped or self._ended.is_set():
                return
            self._stopped = why
        self._compactor.cancel(self._group)

    def run(self) -> Result:
        """Carry it out, in the calling thread. Never raises: an attempt is expendable."""
        started = time.monotonic()
        try:
            result = self._steps()
        except YieldedError as yielded:
            result = Result(yielded.outcome)
        except Exception as error:  # noqa: BLE001  (whatever Spark and Delta may raise)
            result = self._failed(error)
        finally:
            self._ended.set()
        return replace(result, seconds=time.monotonic() - started)

    def _steps(self) -> Result:
        due = self._compactor.look(self.table)
        if due is None:
            return Result(Outcome.IDLE)
        with self._dml.watching(self.table, lambda: self.stop(Why.DML), self._ended):
            if self._dml.in_flight(self.table) or self._stopped is Why.DML:
                return Result(Outcome.AT_DEQUEUE)
            if self._stopped is Why.SHUTDOWN:
                return Result(Outcome.CUT_OFF)
            return self._compactor.run(self.table, due, self._group)

    def _failed(self, error: Exception) -> Result:
        if self._stopped is not None:
            log.info("compaction of %s stopped (%s): %s", self.table, self._stopped, _line(error))
            return Result(_STOPPED[self._stopped])
        log.warning("compaction of %s failed: %s", self.table, _line(error))
        log.debug("the trace", exc_info=error)
        return Result(Outcome.ERROR, error=_line(error))


_STOPPED: Final = {Why.DML: Outcome.MID_FLIGHT, Why.SHUTDOWN: Outcome.CUT_OFF}


def _line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:300]
