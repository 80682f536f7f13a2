"""The lease: one object per generation, made by conditional create.

No clock decides anything here. Whoever created the highest generation holds the lease; everyone
else finds out by asking `superseded`, and ends.
"""

from __future__ import annotations

import json
import re
from datetime import datetime

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.errors import RepairUnderWayError, StorageUnavailableError
from ingest_platform.model.lease import Lease

_KEY = re.compile(r".*/(\d{10})\.json")
_KEPT = 10  # generations that stay, as the stream's recent history
_TRIES = 100


class LeaseStore:
    """The lease of stream `name`, at `streams/<name>/lease/<generation>.json`."""

    def __init__(self, objects: ObjectStore, name: str) -> None:
        self._objects = objects
        self._folder = f"streams/{name}/lease"

    def current(self) -> Lease | None:
        """The lease that counts: the highest generation; None before the first driver."""
        generations = self._generations()
        while generations:
            # An older generation may be pruned between the listing and the reading of it.
            data = self._objects.get(self._key(generations[-1]))
            if data is not None:
                return Lease.from_json(data)
            generations.pop()
        return None

    def take(self, holder: str, purpose: str, now: datetime) -> Lease:
        """Take over: create the generation after the current one, and prune old ones.

        Args:
            holder: Where the holder runs, `host:pid` or a pod's name.
            purpose: `stream` or `repair`.
            now: Recorded for people; it decides nothing.

        Raises:
            RepairUnderWayError: A driver wants to take over from a repair.
            StorageUnavailableError: Others took 100 generations in turn meanwhile.
        """
        tried = 0
        for _ in range(_TRIES):
            if purpose == "stream":
                self._refuse_during_repair()
            tried = max([tried, *self._generations()]) + 1
            lease = Lease(tried, holder, now.isoformat(timespec="seconds"), purpose)
            if self._objects.create(self._key(tried), lease.to_json().encode()):
                self._prune(tried)
                return lease
        raise StorageUnavailableError(
            f"{_TRIES} attempts to take the lease lost against others",
            where=f"{self._objects.root}/{self._folder}",
            remedy="find out what keeps starting drivers of this stream, and stop it",
        )

    def take_after(self, generation: int, holder: str, now: datetime) -> Lease | None:
        """Take over from `generation` and from no other; None if somebody else has already.

        For a successor that was started for that one: whoever came first instead goes on. 0 means
        that nobody has held it yet.
        """
        if max(self._generations(), default=0) != generation:
            return None
        self._refuse_during_repair()
        lease = Lease(generation + 1, holder, now.isoformat(timespec="seconds"))
        if not self._objects.create(self._key(lease.generation), lease.to_json().encode()):
            return None
        self._prune(lease.generation)
        return lease

    def vacate(self, generation: int, by: str, now: datetime) -> None:
        """Say that the driver of `generation` writes nothing more; its successor need not wait.

        It is a courtesy and takes nothing away: who writes is decided by the highest generation
        alone, so a wrong word here, about a driver that only seems dead, cannot harm the table.
        """
        word = json.dumps({"by": by, "at": now.isoformat(timespec="seconds")})
        self._objects.put(self._vacated(generation), word.encode())

    def vacated(self, generation: int) -> bool:
        """Whether that was said. One read, cheap enough to ask twice a second."""
        return self._objects.get(self._vacated(generation)) is not None

    def hand_back(self, holder: str, now: datetime) -> Lease:
        """End a repair: make the generation after it, which any driver may supersede."""
        return self.take(holder, "released", now)

    def superseded(self, lease: Lease) -> bool:
        """Whether the holder of `lease` must end. One listing of at most a dozen names.

        Also true when the lease itself is gone: someone removed the stream's state, and going on
        beside whoever starts afresh there would double data.
        """
        generations = self._generations()
        return not generations or generations[-1] > lease.generation

    def _refuse_during_repair(self) -> None:
        lease = self.current()
        if lease is not None and lease.purpose == "repair":
            raise RepairUnderWayError(
                f"a repair by {lease.holder} holds the stream since {lease.taken_at}",
                where=f"{self._objects.root}/{self._folder}",
                remedy="finish it: ingest-platform repair apply, with the stream's name",
            )

    def _prune(self, newest: int) -> None:
        """Remove old generations.

        A slow taker may re-create a generation that was pruned under it. That is harmless, since
        only the highest counts, and is why `superseded` compares with the highest rather than
        looking for the next one.
        """
        for generation in self._generations():
            if generation <= newest - _KEPT:
                self._objects.delete(self._key(generation))
                self._objects.delete(self._vacated(generation))

    def _generations(self) -> list[int]:
        matches = (_KEY.fullmatch(key) for key in self._objects.list(self._folder))
        return sorted(int(match[1]) for match in matches if match)

    def _vacated(self, generation: int) -> str:
        return f"{self._folder}/{generation:010d}.vacated"

    def _key(self, generation: int) -> str:
        return f"{self._folder}/{generation:010d}.json"
