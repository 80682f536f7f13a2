"""One commit of a Delta log, as its `commitInfo` describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingest_platform.model.account import RepairRecord
from ingest_platform.model.ledger import Ledger


def _no_metrics() -> Mapping[str, int]:
    return {}


@dataclass(frozen=True)
class Commit:
    """A commit, by whichever writer.

    Attributes:
        version: Table version that the commit made.
        timestamp_ms: Milliseconds since the epoch, by the writer's clock.
        operation: As the writer names it: WRITE, OPTIMIZE, ...
        metrics: The writer's counts, such as `numFiles` and `numOutputBytes`.
        ledger: The batch's account; None for a commit that is not the stream's, or whose ledger
            cannot be read (which `ingest-platform audit` reports).
        restored_to: The version whose content a RESTORE brought back; -1 where it names a time
            only, which may have been before anything. None for other commits.
        repair: The account of a repair; None for other commits.
    """

    version: int
    timestamp_ms: int
    operation: str
    metrics: Mapping[str, int] = field(default_factory=_no_metrics)
    ledger: Ledger | None = None
    restored_to: int | None = None
    repair: RepairRecord | None = None
