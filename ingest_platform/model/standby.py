"""A successor in standby: a driver whose JVM is up while its predecessor still writes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ingest_platform.model.status import RunsAt


@dataclass(frozen=True)
class Standby:
    """It is ready to take over from generation `follows`; `at` is ISO 8601 UTC, for people."""

    follows: int
    runs_at: RunsAt
    at: str = ""

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes | None) -> Standby | None:
        """Read the stored form; None for none, and for one that cannot be read."""
        try:
            raw: dict[str, Any] = json.loads(text or "")
            return cls(int(raw["follows"]), RunsAt.from_dict(raw["runs_at"]), str(raw["at"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
