"""The plan of a repair and the steps it goes through, as the journal keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from ingest_platform.model.account import RepairRecord


class Symptom(StrEnum):
    """What a repair mends; each value is stable, since monitoring matches on it."""

    CHECKPOINT = "checkpoint"  # lost, torn, rolled back, or at odds with the table
    LEDGER = "ledger"  # a gap, an overlap or an imbalance in the table's ledgers
    DATA = "data"  # rows are missing, doubled or claimed by no ledger
    REPLAY = "replay"  # a person wants what was written since some moment to be read again
    OFFSETS_LOST = "offsets_lost"  # the topic no longer holds what comes next
    TOPIC_RECREATED = "topic_recreated"  # the topic was deleted and made anew


class Removal(StrEnum):
    """How rows leave the table."""

    DELETE = "delete"  # by their coordinates; what others wrote stays
    RESTORE = "restore"  # the whole table goes back: where coordinates do not tell rows apart


class Step(StrEnum):
    """The steps, in their order; each is recorded when it is over."""

    STOPPED = "1-stopped"  # no driver runs, none can start
    SETTLED = "2-settled"  # the plan, made once more now that nothing moves, is still the one
    REMOVING = "3-removing"  # from here on there is no way back: the Spark job may have begun
    QUARANTINE = "4-quarantine"  # rejected records after the cut are gone
    TABLE = "5-table"  # rows after the cut are gone; the log says so, and where to go on
    RETIRED = "6-retired"  # the checkpoint is backed up and gone
    RELEASED = "7-released"  # lease and pause are given back
    VERIFIED = "8-verified"  # a new session was started (if wanted) and the audit has spoken


@dataclass(frozen=True)
class Finding:
    """One symptom, with a sentence for people."""

    symptom: Symptom
    what: str


@dataclass(frozen=True)
class Wishes:
    """What a person asked for.

    Attributes:
        since: Read again what was committed at this time or later (ISO 8601 with zone).
        to_version: Read again what was committed after this version.
        accept_gap: Give up offsets that the topic no longer holds.
        topic_recreated: The topic was deleted and made anew.
        data: Look into the data too, not only into the log.
    """

    since: str | None = None
    to_version: int | None = None
    accept_gap: bool = False
    topic_recreated: bool = False
    data: bool = False

    def since_ms(self) -> int | None:
        """`since` in milliseconds since the epoch."""
        return int(datetime.fromisoformat(self.since).timestamp() * 1000) if self.since else None


@dataclass(frozen=True)
class Touched:
    """What the repair changes in one table.

    Attributes:
        version: Of the table, when the plan was made.
        files: Files that hold rows to be removed.
        rows: Rows to be removed.
    """

    version: int | None = None
    files: int = 0
    rows: int = 0


@dataclass(frozen=True)
class RepairPlan:
    """What a repair will do.

    Attributes:
        record: What the table's log will say of it.
        wishes: What was asked for.
        findings: Why it is needed.
        removal: How rows leave the table.
        by_offset: Offsets tell the stream's rows apart: no topic was made anew.
        undone: Batches that no longer count.
        kept_batches: The last batch that counts of each session that goes beyond it; -1 if none.
        table: What changes in the table.
        quarantine: What changes in the quarantine.
        session: Lineage of the checkpoint that is retired; None if there is none.
        blocked: Why it cannot be applied, with the remedy; empty if it can.
        warnings: What a person should know before.
        made_at: ISO 8601 UTC.
    """

    record: RepairRecord
    wishes: Wishes = field(default_factory=Wishes)
    findings: tuple[Finding, ...] = ()
    removal: Removal = Removal.DELETE
    by_offset: bool = True
    undone: int = 0
    kept_batches: Mapping[str, int] = field(default_factory=dict[str, int])
    table: Touched = field(default_factory=Touched)
    quarantine: Touched = field(default_factory=Touched)
    session: str | None = None
    blocked: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    made_at: str = ""

    def differs(self, later: RepairPlan) -> str | None:
        """What a later plan does that was not agreed to; None if nothing."""
        if later.blocked:
            return "; ".join(later.blocked)
        for name in ("kept_version", "accepted", "recreated"):
            before, now = getattr(self.record, name), getattr(later.record, name)
            # Maintenance may have added versions: they are not taken back.
            moved = name == "kept_version" and not self.undone and not later.undone
            if before != now and not moved:
                return f"{name} would be {now} instead of {before}"
        return None

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of `ingest-platform repair plan --json`, and of the journal."""
        return {**asdict(self), "record": self.record.to_dict()}

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> RepairPlan:
        """Read the stored form.

        Raises:
            ValueError: It is not a plan.
        """
        raw = cast("dict[str, Any]", json.loads(text))
        try:
            return cls(
                record=RepairRecord.from_dict(raw["record"]),
                wishes=Wishes(**raw["wishes"]),
                findings=tuple(_finding(f) for f in raw["findings"]),
                removal=Removal(raw["removal"]),
                by_offset=bool(raw["by_offset"]),
                undone=int(raw["undone"]),
                kept_batches={str(s): int(b) for s, b in raw["kept_batches"].items()},
                table=Touched(**raw["table"]),
                quarantine=Touched(**raw["quarantine"]),
                session=raw["session"],
                blocked=tuple(raw["blocked"]),
                warnings=tuple(raw["warnings"]),
                made_at=str(raw["made_at"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a repair's plan: {error}") from error


def _finding(raw: Mapping[str, Any]) -> Finding:
    return Finding(Symptom(raw["symptom"]), str(raw["what"]))
