"""What a supervisor remembers from one tick to the next: the sensor's cursor."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ingest_platform.supervise.heartbeat import Heartbeat, Standing
from ingest_platform.supervise.materialize import Reported
from ingest_platform.supervise.rejects import Rejects
from ingest_platform.supervise.telling import Checked
from ingest_platform.supervise.trend import Trend


@dataclass(frozen=True)
class Memory:
    """Watches, trend, last report and verdicts; losing it costs a report and a baseline only."""

    heartbeat: Heartbeat = field(default_factory=Heartbeat)
    reported: Reported = field(default_factory=Reported)
    standing: Standing = field(default_factory=Standing)
    trend: Trend = field(default_factory=Trend)
    checked: Checked = field(default_factory=Checked)
    rejects: Rejects = field(default_factory=Rejects)

    def to_cursor(self) -> str:
        """The text that Dagster keeps."""
        return json.dumps(self, default=vars, separators=(",", ":"))  # `asdict` is ten times slower

    @classmethod
    def from_cursor(cls, text: str | None) -> Memory:
        """Read the text; a fresh memory for one that is missing or of another version."""
        try:
            raw: dict[str, dict[str, Any]] = json.loads(text or "{}")
            return cls(
                Heartbeat(**raw["heartbeat"]),
                Reported(**raw["reported"]),
                Standing(**raw["standing"]),
                Trend.from_dict(raw["trend"]),
                Checked.from_dict(raw.get("checked", {})),
                Rejects(**raw.get("rejects", {})),
            )
        except (ValueError, KeyError, TypeError):
            return cls()
