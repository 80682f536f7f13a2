"""The ledger: what a data commit says of itself, in the commit's `userMetadata`.

A reader of the Delta log alone can prove from it that nothing is missing and nothing is doubled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest_platform.model.offsets import OffsetRanges
from ingest_platform.model.user_metadata import section_of, to_user_metadata

VERSION = 1
_SECTION = "ingest"


@dataclass(frozen=True)
class Ledger:
    """One batch's account.

    Attributes:
        stream: Name of the stream.
        session: Lineage id of the checkpoint; it is also the commit's `txnAppId`.
        batch: Spark's batch id, which restarts with each session; the commit's `txnVersion`.
        offsets: The ranges that the batch read.
        read: Records that Kafka delivered for those ranges.
        written: Rows in the table's commit.
        quarantined: Records in the quarantine table.
        skipped: Records dropped by a declared policy, such as tombstones.
        gaps: Offsets without a record, which only compacted or transactional topics may have.
        max_event_time: Newest event (or record) time in the batch, ISO 8601 with zone.
        lag: Offsets still unread after the batch, by `topic-partition`, at planning time.
    """

    stream: str
    session: str
    batch: int
    offsets: OffsetRanges
    read: int
    written: int
    quarantined: int = 0
    skipped: int = 0
    gaps: int = 0
    max_event_time: str | None = None
    lag: Mapping[str, int] = field(default_factory=dict[str, int])

    def imbalance(self) -> str | None:
        """The equation that does not hold, with its numbers, or None when the batch balances."""
        accounted = self.written + self.quarantined + self.skipped
        if self.read != accounted:
            return (
                f"read {self.read} != written {self.written} + quarantined {self.quarantined} "
                f"+ skipped {self.skipped} = {accounted}"
            )
        if self.offsets.width != self.read + self.gaps:
            return (
                f"offsets span {self.offsets.width} but {self.read} records were read "
                f"and {self.gaps} gaps are known"
            )
        return None

    def to_user_metadata(self) -> str:
        """The JSON that goes into the commit."""
        body: dict[str, Any] = {
            "v": VERSION,
            "stream": self.stream,
            "session": self.session,
            "batch": self.batch,
            "offsets": self.offsets.to_ledger(),
            "read": self.read,
            "written": self.written,
            "quarantined": self.quarantined,
            "skipped": self.skipped,
        }
        if self.gaps:
            body["gaps"] = self.gaps
        if self.max_event_time:
            body["max_event_time"] = self.max_event_time
        if self.lag:
            body["lag"] = dict(self.lag)
        return to_user_metadata(_SECTION, body)

    @classmethod
    def from_user_metadata(cls, text: str | None) -> Ledger | None:
        """Read a commit's `userMetadata`; None when it is not a ledger (another writer's commit).

        Raises:
            ValueError: It claims to be a ledger but cannot be read, or its version is unknown.
        """
        body = section_of(text, _SECTION)
        if body is None:
            return None
        if body.get("v") != VERSION:
            raise ValueError(f"ledger version {body.get('v')!r} is not {VERSION}")
        try:
            return cls(
                stream=body["stream"],
                session=body["session"],
                batch=int(body["batch"]),
                offsets=OffsetRanges.from_ledger(body["offsets"]),
                read=int(body["read"]),
                written=int(body["written"]),
                quarantined=int(body["quarantined"]),
                skipped=int(body["skipped"]),
                gaps=int(body.get("gaps", 0)),
                max_event_time=body.get("max_event_time"),
                lag=body.get("lag", {}),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"ledger lacks or garbles {error}") from error
