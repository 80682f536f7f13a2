"""Markers of DML in flight: small objects beside the table's state, seen by every driver.

No clock of another machine is trusted. Whoever announces DML rewrites its marker with the next beat
every few seconds; a reader takes a marker for abandoned when it has not changed for the marker's
own time to live, by the reader's own clock. So a wrong clock anywhere changes nothing, and the
price is that the first sight of a marker always counts as DML in flight.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final, Self

from ingest_platform.adapters.objects import ObjectStore

TTL_SECONDS: Final = 60.0

# Setting of a session whose commits are automatic: the LogStores look into this folder of markers
# before each of them (YieldGate.java).
YIELD_TO: Final = "spark.ingest.commit.yieldTo"


def markers_folder(table: str) -> str:
    """Key of the folder of `table`'s markers, below the state's root."""
    path = table.rstrip("/")
    return f"dml/{path.rpartition('/')[2]}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def markers_uri(objects: ObjectStore, table: str) -> str:
    """The same folder as `YIELD_TO` wants it."""
    path = f"{objects.root}/{markers_folder(table)}"
    return path if "://" in path else f"file://{path}"


@dataclass(frozen=True)
class Marker:
    """What a marker holds.

    Attributes:
        by: Who runs the DML: host and process.
        beat: Rises with each renewal.
        ttl: Seconds without renewal after which it counts for nothing.
    """

    by: str
    beat: int = 0
    ttl: float = TTL_SECONDS

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps({"v": 1, "by": self.by, "beat": self.beat, "ttl": self.ttl})

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Read the stored form; one that cannot be read is a marker nevertheless."""
        try:
            raw = json.loads(text)
            return cls(str(raw["by"]), int(raw["beat"]), float(raw["ttl"]))
        except (ValueError, TypeError, KeyError):
            return cls(by="unknown")


@dataclass(frozen=True)
class Sighting:
    """A marker's bytes, and since when (reader's monotonic seconds) they have not changed."""

    data: bytes
    since: float

    def again(self, data: bytes, now: float) -> Sighting:
        """The marker seen once more."""
        return self if data == self.data else Sighting(data, now)

    def abandoned(self, now: float) -> bool:
        """Whether its writer has let it expire."""
        return now - self.since > Marker.from_json(self.data).ttl


class MarkerReader:
    """The markers of one table, as one reader sees them over time. Not thread safe."""

    def __init__(self, objects: ObjectStore, table: str) -> None:
        self._objects = objects
        self._folder = markers_folder(table)
        self._seen: dict[str, Sighting] = {}

    def in_flight(self, now: float) -> list[Marker]:
        """Markers that count at `now` (monotonic seconds). Abandoned ones are removed.

        Removing is safe: a writer that was only suspended puts its marker back with its next beat.

        Raises:
            IngestError: The store cannot be read.
        """
        keys = self._objects.list(self._folder)
        found = {key: data for key in keys if (data := self._objects.get(key)) is not None}
        self._seen = {
            key: self._seen[key].again(data, now) if key in self._seen else Sighting(data, now)
            for key, data in found.items()
        }
        for key, sighting in self._seen.items():
            if sighting.abandoned(now):
                self._objects.delete(key)
        return [Marker.from_json(s.data) for s in self._seen.values() if not s.abandoned(now)]
