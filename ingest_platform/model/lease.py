"""The lease: which driver may write a stream. A higher generation always wins."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Lease:
    """One generation's claim on a stream.

    No clock decides who holds it: the holder is whoever created the highest generation, so a
    clock that is an hour off on one host can neither steal nor keep a lease.

    Attributes:
        generation: Counts up by one with each take-over, from 1.
        holder: Where the holder runs, for people: `host:pid` or a pod's name.
        taken_at: ISO 8601 UTC, for people only.
        purpose: `stream`; `repair` while a repair keeps every driver out; `released` when it has
            handed the lease back.
    """

    generation: int
    holder: str
    taken_at: str
    purpose: str = "stream"

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Lease:
        """Read the stored form.

        Raises:
            ValueError: It is not a lease.
        """
        raw = json.loads(text)
        try:
            return cls(**raw)
        except TypeError as error:
            raise ValueError(f"not a lease: {error}") from error
