"""One commit of a Delta log, as far as an audit cares."""

from __future__ import annotations

from dataclasses import dataclass

from ingest_platform.model.account import RepairRecord, ReplayRecord
from ingest_platform.model.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Commit:
    """What `commitInfo`, and where that is not enough the file's actions, say of a commit.

    Attributes:
        version: Table version that the commit made.
        timestamp: Milliseconds since the epoch; 0 when the commit does not say.
        operation: As the writer names it: WRITE, OPTIMIZE, RESTORE, ...
        ledger: The batch's account; None for another writer's commit.
        unreadable: Why the commit, or a ledger that it claims to hold, cannot be read.
        changes_data: It adds or removes rows; only known (and asked) without a ledger.
        rows: Rows that Delta itself counted into the commit, where it says so.
        restored_to: The version whose content a RESTORE brought back.
        repair: A repair's account of itself.
        replay: A replay's account of itself.
    """

    version: int
    timestamp: int = 0
    operation: str = ""
    ledger: Ledger | None = None
    unreadable: str | None = None
    changes_data: bool = False
    rows: int | None = None
    restored_to: int | None = None
    repair: RepairRecord | None = None
    replay: ReplayRecord | None = None


@dataclass(frozen=True)
class LogExtent:
    """What the listing of a log folder shows, beside the commits.

    Attributes:
        checkpoints: Versions that have a checkpoint.
        newest_trace: Highest version of any file in the log (checkpoint, checksum): a commit that
            is older than its own traces has been deleted.
        cleanup_possible: False when the table is younger than its log retention, so that Delta's
            own clean-up cannot have removed any entry; None when that is not known.
    """

    checkpoints: tuple[int, ...] = ()
    newest_trace: int | None = None
    cleanup_possible: bool | None = None
