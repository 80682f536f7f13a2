"""Where a successor in standby says that it is ready, for whoever launched it."""

from __future__ import annotations

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.model.standby import Standby


class StandbyStore:
    """The word of stream `name`'s successor, at `streams/<name>/standby.json`."""

    def __init__(self, objects: ObjectStore, name: str) -> None:
        self._objects = objects
        self._key = f"streams/{name}/standby.json"

    def read(self) -> Standby | None:
        """The last successor's word; None when there is none, or it cannot be read."""
        return Standby.from_json(self._objects.get(self._key))

    def write(self, standby: Standby) -> None:
        """Replace it."""
        self._objects.put(self._key, standby.to_json().encode())
