"""When a table was last compacted and vacuumed, by whomever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from ingest_platform.model.commit import Commit


@dataclass(frozen=True)
class Housekeeping:
    """Times of the last runs, ISO 8601 UTC; None where none is known."""

    compacted_at: str | None = None
    vacuumed_at: str | None = None

    @classmethod
    def told_by(cls, commits: Iterable[Commit]) -> Self:
        """As far as these commits tell, oldest first."""
        last = {commit.operation: commit.timestamp_ms for commit in commits if commit.timestamp_ms}
        return cls(_time(last.get("OPTIMIZE")), _time(last.get("VACUUM END")))

    def or_later(self, other: Housekeeping) -> Housekeeping:
        """The later of each."""
        compacted = max(self.compacted_at or "", other.compacted_at or "") or None
        return Housekeeping(compacted, max(self.vacuumed_at or "", other.vacuumed_at or "") or None)


def _time(timestamp_ms: int | None) -> str | None:
    if timestamp_ms is None:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
