"""What a supervisor remembers from one tick to the next: the sensor's cursor."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ingest_platform.supervise.heartbeat import Heartbeat
from ingest_platform.supervise.materialize import Reported


@dataclass(frozen=True)
class Memory:
    """Heartbeat watch and last report; losing it costs one period's report, nothing else."""

    heartbeat: Heartbeat = field(default_factory=Heartbeat)
    reported: Reported = field(default_factory=Reported)

    def to_cursor(self) -> str:
        """The text that Dagster keeps."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_cursor(cls, text: str | None) -> Memory:
        """Read the text; a fresh memory for one that is missing or of another version."""
        try:
            raw: dict[str, dict[str, Any]] = json.loads(text or "{}")
            return cls(Heartbeat(**raw["heartbeat"]), Reported(**raw["reported"]))
        except (ValueError, KeyError, TypeError):
            return cls()
