"""When a stream's tables were last maintained: told by the maintenance driver, read at a glance.

The table's own history says so, too, but each commit of it is a read of its own.
"""

from __future__ import annotations

import json
from datetime import datetime

from ingest_platform.adapters.objects import ObjectStore


class HousekeepingStore:
    """The last runs for stream `name`, at `streams/<name>/housekeeping/<action>.json`."""

    def __init__(self, objects: ObjectStore, name: str) -> None:
        self._objects = objects
        self._folder = f"streams/{name}/housekeeping"

    def ran(self, action: str, at: datetime) -> None:
        """Record a run of `compact` or `vacuum` that came to its end."""
        text = json.dumps({"at": at.isoformat(timespec="seconds")})
        self._objects.put(f"{self._folder}/{action}.json", text.encode())

    def last(self, action: str) -> str | None:
        """When that was, ISO 8601 UTC; None if it never ran, or cannot be read."""
        raw = self._objects.get(f"{self._folder}/{action}.json")
        try:
            return str(json.loads(raw)["at"]) if raw else None
        except (ValueError, KeyError, TypeError):
            return None
