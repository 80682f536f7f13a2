"""The service of a driver: submissions in, attempts on a few workers, counts out.

Whoever writes to a table does not wait for it: `committed` takes microseconds, and an attempt's
failure is counted and logged, not raised. What both share are the cores. So after a compaction its
table rests for as long as that took: half of the time belongs to the writes alone.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from ingest_platform.maintain.auto_compaction.attempt import Attempt, Compactor, DmlWatch, Why
from ingest_platform.maintain.auto_compaction.fallback import FallbackPolicy, Standing
from ingest_platform.maintain.auto_compaction.outcome import Outcome, Result, Tally
from ingest_platform.maintain.auto_compaction.queue import CoalescingQueue, Submission
from ingest_platform.model.status import AutoCompactionReport

log = logging.getLogger(__name__)

Mode = Literal["inline", "async"]


class Worker(Protocol):
    """A thread, as far as the service needs one."""

    def start(self) -> None:
        """Begin to work."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, for `timeout` seconds at most."""
        ...


StartWorker = Callable[[Callable[[], None]], Worker]


@dataclass(frozen=True)
class Limits:
    """Bounds of the service: attempts at a time, and tables that wait."""

    parallelism: int = 2
    capacity: int = 64


_POLICY: Final = FallbackPolicy()
_LIMITS: Final = Limits()
_FRESH: Final = Standing()


def _daemon(target: Callable[[], None]) -> Worker:
    return threading.Thread(target=target, name="auto-compaction", daemon=True)


class AutoCompactionService:
    """Compacts tables some time after their commits. Thread safe."""

    def __init__(
        self,
        compactor: Compactor,
        dml: DmlWatch,
        *,
        policy: FallbackPolicy = _POLICY,
        limits: Limits = _LIMITS,
        changed: Callable[[AutoCompactionReport], None] = lambda _: None,
        make_worker: StartWorker = _daemon,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Bind the service to what it works with; `start` makes the workers.

        Args:
            compactor: Spark and Delta.
            dml: Tells of DML in flight.
            policy: Of the fallback to inline compaction.
            limits: Workers and queue.
            changed: Told the new counts after each attempt, in the worker's thread.
            make_worker: Makes the thread for a worker's loop.
            clock: Monotonic seconds.
        """
        self._compactor, self._dml = compactor, dml
        self._policy, self._limits = policy, limits
        self._changed, self._make_worker, self._clock = changed, make_worker, clock
        self._queue = CoalescingQueue(limits.capacity)
        self._tally = Tally()
        self._standings: dict[str, Standing] = {}
        self._attempts: dict[str, Attempt] = {}
        self._workers: list[Worker] = []
        self._closed = False
        # Reentrant: the counts are reported from within the lock and outside of it.
        self._wake = threading.Condition(threading.RLock())

    def start(self) -> None:
        """Start the workers."""
        self._workers = [self._make_worker(self._work) for _ in range(self._limits.parallelism)]
        for worker in self._workers:
            worker.start()

    def mode(self, table: str) -> Mode:
        """Where the compaction after `table`'s next commit belongs."""
        with self._wake:
            inline = self._standing(table).inline(self._clock())
        return "inline" if inline else "async"

    def committed(self, table: str) -> Submission | None:
        """`table` has a new commit: look at it some time. None while it is inline, or closed."""
        with self._wake:
            if self._closed or self.mode(table) == "inline":
                return None
            submission = self._queue.submit(table)
            self._tally.submissions[submission] += 1
            self._wake.notify_all()
        return submission

    def report(self, table: str) -> AutoCompactionReport:
        """The counts so far, with the mode of `table`."""
        with self._wake:
            return self._tally.report(
                mode=self.mode(table), waiting=self._queue.waiting, running=self._queue.running
            )

    def work_one(self) -> Result | None:
        """Carry out the next attempt in this thread; None if no table is due for one."""
        with self._wake:
            began = self._clock()
            table = None if self._closed else self._queue.take(began)
            if table is None:
                return None
            attempt = Attempt(table, f"auto-compaction-{uuid.uuid4()}", self._compactor, self._dml)
            self._attempts[table] = attempt
        result = attempt.run()
        with self._wake:
            del self._attempts[table]
            now = self._clock()
            rest = now - began if result.outcome is Outcome.COMPLETED else 0.0
            self._queue.done(table, now + rest)
            self._book(table, result)
            report = self.report(table)
            self._wake.notify_all()  # the table may wait again, and `idle` may be awaited
        self._changed(report)
        return result

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until no table waits or is worked on; False if that takes longer (seconds)."""
        with self._wake:
            return self._wake.wait_for(
                lambda: not self._queue.waiting and not self._queue.running, timeout
            )

    def close(self, within: float) -> bool:
        """Take no more, drop what waits, and end what runs; True if all workers have ended.

        An attempt that runs gets half the time to finish, then its jobs are cancelled. What was
        dropped or cut off comes up again with the next driver's first commit.

        Args:
            within: Seconds after which this returns in any case.
        """
        deadline = time.monotonic() + within
        with self._wake:
            self._closed = True
            self._queue.clear()
            self._wake.notify_all()
            self._wake.wait_for(lambda: not self._queue.running, within / 2)
            running = list(self._attempts.values())
        for attempt in running:
            attempt.stop(Why.SHUTDOWN)
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        with self._wake:
            ended = not self._queue.running
        if not ended:
            log.warning("compaction still runs after %.0f s; its commit is whole or none", within)
        return ended

    def _work(self) -> None:
        while True:
            self.work_one()
            with self._wake:
                while not self._closed and (wait := self._wait()) != 0.0:
                    self._wake.wait(wait)
                if self._closed:
                    return

    def _wait(self) -> float | None:
        """Seconds until there is a table to take; None if somebody has to submit one first."""
        due = self._queue.due()
        return None if due is None else max(0.0, due - self._clock())

    def _standing(self, table: str) -> Standing:
        return self._standings.get(table, _FRESH)

    def _book(self, table: str, result: Result) -> None:
        self._tally.book(result)
        before, now = self._standing(table), self._clock()
        if result.outcome.yielded:
            after = before.after_yield(self._policy, now)
            if after.inline(now):
                self._queue.withdraw(table)
            if after.inline(now) and not before.inline(now):
                self._tally.fallbacks += 1
                log.warning(
                    "compaction of %s yielded (%s); inline for the next %.0f s",
                    *(table, result.outcome, after.wait),
                )
            self._standings[table] = after
        elif result.outcome is Outcome.COMPLETED:
            self._tally.heals += before.inline_until is not None
            self._standings[table] = before.after_success()
