"""What people and the supervisor want of a stream: its desired state."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Pause:
    """No driver is wanted until someone resumes the stream. `since` is ISO 8601 UTC."""

    by: str
    since: str
    reason: str = ""

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Pause:
        """Read the stored form; an unreadable pause is still a pause, since someone wanted one."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return cls(by="unknown", since="", reason="the stored pause cannot be read")


@dataclass(frozen=True)
class DrainRequest:
    """The driver of `generation` shall finish its batch and exit; its successors need not.

    `at` is ISO 8601 UTC.
    """

    generation: int
    by: str
    at: str
    reason: str = ""

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> DrainRequest | None:
        """Read the stored form; None for one that cannot be read: it names no generation."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None


@dataclass(frozen=True)
class Control:
    """The desired state of one stream; without pause and drain request, it shall run."""

    pause: Pause | None = None
    drain: DrainRequest | None = None

    def drains(self, generation: int) -> bool:
        """Whether the driver of `generation` shall finish and exit."""
        return self.drain is not None and self.drain.generation >= generation
