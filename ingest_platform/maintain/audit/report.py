"""What an audit says: findings, what is proven, and what could not be proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The kinds of findings; each value is stable, since monitoring matches on it."""

    GAP = "gap"  # offsets between two proven ranges that no commit holds
    OVERLAP = "overlap"  # offsets that more than one commit holds
    IMBALANCE = "imbalance"  # a batch whose own counts do not add up
    ROWS_DIFFER = "rows_differ"  # Delta counted other rows than the ledger says
    UNREADABLE_LEDGER = "unreadable_ledger"  # claims to be a ledger, or a commit, and is not
    NO_LEDGER = "no_ledger"  # rows came or went in a commit that does not account for them
    MISSING_ENTRY = "missing_entry"  # a version of the log that must exist and does not
    BATCH_ORDER = "batch_order"  # a session's batch numbers do not rise
    SESSION_ORDER = "session_order"  # a session goes on after a later one began: two drivers
    SESSION_CHANGE = "session_change"  # a new checkpoint took over; harmless if offsets join
    RESTORED = "restored"  # RESTORE undid commits; what they held must come again
    REPAIRED = "repaired"  # a repair took batches out; what they held must come again
    ACCEPTED_GAP = "accepted_gap"  # a person gave these offsets up
    REPLAYED = "replayed"  # rejected records became rows of the table
    DATA_MISSING = "data_missing"  # the ledger counts an offset that neither table holds
    DATA_DOUBLED = "data_doubled"  # an offset is in table and quarantine more than once
    DATA_UNCLAIMED = "data_unclaimed"  # rows whose offsets no ledger claims
    DATA_SURPLUS = "data_surplus"  # a batch left more rows than its ledger counts
    LOST = "lost"  # the broker deleted offsets that were never read
    TOPIC_RECREATED = "topic_recreated"  # the broker's log ends before what was read from it
    NEVER_READ = "never_read"  # still in the topic, but before the first offset that was read


class Level(StrEnum):
    """Whether a finding breaks the proof."""

    ERROR = "error"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One finding, as exactly as it can be located.

    Attributes:
        kind: What it is.
        what: A sentence for people, with numbers.
        level: An error breaks the proof, a note does not.
        topic: The topic, where the finding is about one.
        partition: The partition, where the finding is about one.
        start: First offset concerned.
        until: Offset after the last one concerned.
        versions: Table versions that show it, oldest first.
    """

    kind: Kind
    what: str
    level: Level = Level.ERROR
    topic: str | None = None
    partition: int | None = None
    start: int | None = None
    until: int | None = None
    versions: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProvenRange:
    """Offsets `[start, until)` of a partition that exactly one balanced commit each accounts for.

    Attributes:
        first_version: Oldest table version that holds some of them.
        last_version: Newest one.
        incarnation: How often the topic had been made anew before, by repairs.
    """

    topic: str
    partition: int
    start: int
    until: int
    first_version: int
    last_version: int
    incarnation: int = 0


@dataclass(frozen=True)
class Totals:
    """Sums over the audited commits; records are counted as their ledgers do.

    Attributes:
        commits: Commits read, of all writers.
        batches: Commits with a ledger that still count, after any RESTORE.
        undone: Commits with a ledger that a RESTORE undid.
        others: Commits without a ledger, such as compaction.
        max_event_time: Newest event time of any batch, as its ledger wrote it.
    """

    commits: int = 0
    batches: int = 0
    undone: int = 0
    others: int = 0
    read: int = 0
    written: int = 0
    quarantined: int = 0
    skipped: int = 0
    gaps: int = 0
    max_event_time: str | None = None


@dataclass(frozen=True)
class AuditReport:
    """The whole outcome.

    Attributes:
        first_version: Oldest version that the log still has; None for an empty log.
        last_version: The version that the audit proves.
        findings: Errors first, then notes, each in log order.
        proven: Maximal ranges, by topic, partition and offset.
        unproved: Sentences on what the log can no longer show.
        sessions: Session ids in the order of their first batch.
        incarnations: How often a topic was made anew, where it ever was.
        accepted: Where reading goes on after accepted gaps, by `topic-partition`.
        data: Counts of the scan of the data itself, where it was asked for.
        lag: Offsets not yet read by `topic-partition`, where the broker was asked.
    """

    first_version: int | None
    last_version: int | None
    findings: tuple[Finding, ...] = ()
    proven: tuple[ProvenRange, ...] = ()
    unproved: tuple[str, ...] = ()
    totals: Totals = Totals()
    sessions: tuple[str, ...] = ()
    incarnations: Mapping[str, int] = field(default_factory=dict)
    accepted: Mapping[str, int] = field(default_factory=dict)
    data: Mapping[str, int] | None = None
    lag: Mapping[str, int] | None = field(default=None)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that break the proof."""
        return tuple(f for f in self.findings if f.level is Level.ERROR)

    @property
    def clean(self) -> bool:
        """Whether every offset of every proven range is there exactly once, as far as was asked."""
        return not self.errors

    def with_findings(self, more: list[Finding], **changes: Any) -> AuditReport:
        """This report with further findings, and with other fields replaced."""
        merged = (*self.findings, *more)
        ordered = sorted(merged, key=lambda f: f.level is not Level.ERROR)
        return replace(self, findings=tuple(ordered), **changes)

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of `ingest-platform audit --json`."""
        return {"clean": self.clean, **asdict(self)}
