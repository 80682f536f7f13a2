"""Whose turn it is to maintain a table: one run at a time, whoever started it.

Dagster keeps the runs of its schedules apart by a tag. A person who materializes the asset in the
UI, or calls `ingest-platform compact`, comes past that; the turn is taken by every run that has
work to do.

No clock of another machine is trusted: whoever holds the turn rewrites its beat every few seconds,
and only a beat that stands still for `TTL_SECONDS` of the beholder's own clock is a dead run's. Had
that run merely been suspended, two would work on the table for a while. Their commits are safe
beside each other as any two writers' are; one of them would repeat its work.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.adapters.processes import this_holder
from ingest_platform.errors import IngestError
from ingest_platform.model.lease import Lease
from ingest_platform.model.times import utc_now

log = logging.getLogger(__name__)

TTL_SECONDS: Final = 30.0

_BEATS_PER_TTL: Final = 6
_LOOKS_PER_TTL: Final = 24


class Turns:
    """The turns at the table of stream `name`, below `streams/<name>/maintenance/`."""

    def __init__(
        self,
        objects: ObjectStore,
        name: str,
        *,
        ttl: float = TTL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind to the stream's state; `ttl` and the clock are in seconds."""
        self._objects, self._name, self._ttl = objects, name, ttl
        self._clock, self._sleep = clock, sleep
        self._store = LeaseStore(objects, f"{name}/maintenance")
        self._beats = f"streams/{name}/maintenance/beat.json"

    @contextmanager
    def turn(self) -> Iterator[Lease | None]:
        """Have the turn while the block runs.

        Yields None if it is this run's turn, else the lease of the run that has it and lives.
        Which of the two is known within `ttl`.

        Raises:
            IngestError: The state cannot be read or written.
        """
        mine, other = self._take()
        if mine is None:
            yield other
            return
        ended = threading.Event()
        beats = threading.Thread(target=self._beat, args=(mine, ended), daemon=True)
        beats.start()
        try:
            yield None
        finally:
            ended.set()
            beats.join()
            self._give_back(mine)

    def _take(self) -> tuple[Lease | None, Lease | None]:
        """This run's lease, or that of another one that lives."""
        seen: tuple[int, bytes | None] | None = None
        since = self._clock()
        while True:
            holder = self._store.current()
            over = holder is None or self._store.vacated(holder.generation)
            if holder is not None and not over:
                now = holder.generation, self._objects.get(self._beats)
                if seen is None:
                    seen, since = now, self._clock()
                elif now != seen:
                    return None, holder
                over = self._clock() - since > self._ttl
            mine = self._after(holder) if over else None
            if mine is not None:
                return mine, None
            self._sleep(self._ttl / _LOOKS_PER_TTL)

    def _after(self, before: Lease | None) -> Lease | None:
        """Take over; None if somebody else has done so already."""
        generation = before.generation if before else 0
        return self._store.take_after(generation, this_holder(), utc_now())

    def _beat(self, mine: Lease, ended: threading.Event) -> None:
        beat = 0
        while True:
            try:
                text = json.dumps({"generation": mine.generation, "beat": beat})
                self._objects.put(self._beats, text.encode())
            except IngestError as error:
                log.warning("%s: the turn was not renewed: %s", self._name, error.what)
            if ended.wait(self._ttl / _BEATS_PER_TTL):
                return
            beat += 1

    def _give_back(self, mine: Lease) -> None:
        try:
            self._store.vacate(mine.generation, mine.holder, utc_now())
        except IngestError as error:
            # The work is done; whoever comes next finds a beat that stands still.
            log.warning("%s: the turn ends by itself: %s", self._name, error.what)


def left_to(other: Lease) -> str:
    """What a run says that found the turn taken."""
    return f"left alone: the maintenance run {other.holder} has had its turn since {other.taken_at}"
