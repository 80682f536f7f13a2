"""Where drivers leave their status documents, and supervisor and CLI read them."""

from __future__ import annotations

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.model.status import Status


class StatusStore:
    """Status documents at `streams/<name>/status.json` below a spec's `root`."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def read(self, name: str) -> Status | None:
        """The last status of a stream; None when there is none, or it cannot be read."""
        return Status.from_json(self._objects.get(_key(name)))

    def write(self, status: Status) -> None:
        """Replace the status of `status.stream`."""
        self._objects.put(_key(status.stream), status.to_json().encode())


def _key(name: str) -> str:
    return f"streams/{name}/status.json"
