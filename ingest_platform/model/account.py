"""What repairs and replays say of themselves, in the `userMetadata` of their commits.

A ledger accounts for a batch that was read from Kafka. These two account for the other commits of
the platform that change rows, so that the log alone still proves what the table holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest_platform.model.offsets import OffsetRanges, Positions
from ingest_platform.model.user_metadata import section_of, to_user_metadata

VERSION = 1
CLOSED = 2**62  # as a session's newest batch: a repair has ended it, nothing of it can follow
_REPAIR = "ingest_repair"
_REPLAY = "ingest_replay"


def repair_app_id(stream: str) -> str:
    """The `txnAppId` of a stream's repairs; their numbers are the `txnVersion`."""
    return f"ingest-repair-{stream}"


def replay_app_id(stream: str) -> str:
    """The `txnAppId` of a stream's replays; their numbers are the `txnVersion`."""
    return f"ingest-replay-{stream}"


@dataclass(frozen=True)
class RepairRecord:
    """A repair's account: what it took out of the table, and where the next session goes on.

    The stream's batches of versions above `kept_version`, up to the repair's own, no longer count:
    their rows were removed, and are read again from `start`.

    Attributes:
        stream: Name of the stream.
        repair: Number of the repair, from 1; the n-th of this stream.
        kept_version: Newest version whose batches still count.
        kept: Where each partition ends in the table now.
        start: Where the next session starts, for every partition.
        accepted: Offsets that a person gave up, because the topic no longer holds them.
        recreated: Topics that were deleted and made anew: their offsets mean other records now.
    """

    stream: str
    repair: int
    kept_version: int
    kept: Positions
    start: Positions
    accepted: OffsetRanges = field(default_factory=OffsetRanges)
    recreated: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "v": VERSION,
            "stream": self.stream,
            "repair": self.repair,
            "kept_version": self.kept_version,
            "kept": self.kept.to_dict(),
            "start": self.start.to_dict(),
            "accepted": self.accepted.to_ledger(),
            "recreated": list(self.recreated),
        }

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> RepairRecord:
        """Read the stored form.

        Raises:
            ValueError: It lacks something, or its version is unknown.
        """
        if body.get("v") != VERSION:
            raise ValueError(f"version {body.get('v')!r} of a repair's record is not {VERSION}")
        try:
            return cls(
                stream=str(body["stream"]),
                repair=int(body["repair"]),
                kept_version=int(body["kept_version"]),
                kept=Positions.from_dict(body["kept"]),
                start=Positions.from_dict(body["start"]),
                accepted=OffsetRanges.from_ledger(body["accepted"]),
                recreated=tuple(str(topic) for topic in body["recreated"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a repair's record lacks or garbles {error}") from error

    def to_user_metadata(self) -> str:
        """The JSON that goes into the commit."""
        return to_user_metadata(_REPAIR, self.to_dict())

    @classmethod
    def from_user_metadata(cls, text: str | None) -> RepairRecord | None:
        """Read a commit's `userMetadata`; None for another commit's.

        Raises:
            ValueError: It claims to be a repair's record but cannot be read.
        """
        body = section_of(text, _REPAIR)
        return None if body is None else cls.from_dict(body)


@dataclass(frozen=True)
class ReplayRecord:
    """A replay's account: rejected records that became rows of the table.

    Their offsets stay accounted for by the ledgers of the batches that rejected them.

    Attributes:
        stream: Name of the stream.
        replay: Number of the replay, from 1.
        rows: Rows that moved from the quarantine into the table.
    """

    stream: str
    replay: int
    rows: int

    def to_user_metadata(self) -> str:
        """The JSON that goes into the commit."""
        body = {"v": VERSION, "stream": self.stream, "replay": self.replay, "rows": self.rows}
        return to_user_metadata(_REPLAY, body)

    @classmethod
    def from_user_metadata(cls, text: str | None) -> ReplayRecord | None:
        """Read a commit's `userMetadata`; None for another commit's.

        Raises:
            ValueError: It claims to be a replay's record but cannot be read.
        """
        body = section_of(text, _REPLAY)
        if body is None:
            return None
        if body.get("v") != VERSION:
            raise ValueError(f"version {body.get('v')!r} of a replay's record is not {VERSION}")
        try:
            return cls(str(body["stream"]), int(body["replay"]), int(body["rows"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"a replay's record lacks or garbles {error}") from error
