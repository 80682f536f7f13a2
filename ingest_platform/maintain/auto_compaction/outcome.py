"""What became of attempts to compact a table, counted for the status document."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from ingest_platform.maintain.auto_compaction.queue import Submission
from ingest_platform.model.status import AutoCompactionReport


class Outcome(StrEnum):
    """How an attempt ended. Those that yielded are named by the phase in which they did."""

    COMPLETED = "completed"  # an OPTIMIZE was committed
    IDLE = "idle"  # a look at the fresh snapshot found too few small files
    OVERTAKEN = "overtaken"  # another OPTIMIZE had merged the files before this one committed
    AT_DEQUEUE = "at_dequeue"  # DML was in flight when the attempt's turn came
    MID_FLIGHT = "mid_flight"  # DML began while it ran; its Spark jobs were cancelled
    BEFORE_COMMIT = "before_commit"  # the LogStore turned its commit back
    CONFLICT = "conflict"  # DML that nobody had announced was faster; Delta refused the commit
    CUT_OFF = "cut_off"  # the driver ends
    ERROR = "error"

    @property
    def yielded(self) -> bool:
        """Whether DML on the table came first."""
        return self in YIELDED


YIELDED = (Outcome.AT_DEQUEUE, Outcome.MID_FLIGHT, Outcome.BEFORE_COMMIT, Outcome.CONFLICT)


@dataclass(frozen=True)
class Result:
    """One attempt's end. Files are those that an OPTIMIZE replaced, and those it wrote."""

    outcome: Outcome
    removed: int = 0
    added: int = 0
    seconds: float = 0.0
    error: str = ""


@dataclass
class Tally:
    """Counts since the driver started. Not thread safe: the caller locks."""

    submissions: Counter[Submission] = field(default_factory=Counter[Submission])
    outcomes: Counter[Outcome] = field(default_factory=Counter[Outcome])
    fallbacks: int = 0
    heals: int = 0
    files_removed: int = 0
    files_added: int = 0
    seconds: float = 0.0
    last_error: str | None = None

    def book(self, result: Result) -> None:
        """Count one attempt."""
        self.outcomes[result.outcome] += 1
        self.files_removed += result.removed
        self.files_added += result.added
        if result.outcome is Outcome.COMPLETED:
            self.seconds += result.seconds
        if result.outcome is Outcome.ERROR:
            self.last_error = result.error

    def report(self, *, mode: str, waiting: int, running: int) -> AutoCompactionReport:
        """The counts as the status document shows them."""
        return AutoCompactionReport(
            mode=mode,
            waiting=waiting,
            running=running,
            submitted=self.submissions[Submission.QUEUED],
            coalesced=self.submissions[Submission.COALESCED],
            dropped=self.submissions[Submission.DROPPED],
            completed=self.outcomes[Outcome.COMPLETED],
            idle=self.outcomes[Outcome.IDLE] + self.outcomes[Outcome.OVERTAKEN],
            yielded={phase.value: self.outcomes[phase] for phase in YIELDED},
            errors=self.outcomes[Outcome.ERROR],
            cut_off=self.outcomes[Outcome.CUT_OFF],
            fallbacks=self.fallbacks,
            heals=self.heals,
            files_removed=self.files_removed,
            files_added=self.files_added,
            seconds=round(self.seconds, 3),
            last_error=self.last_error,
        )
