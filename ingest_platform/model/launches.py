"""The history of launches that backoff is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ingest_platform.model.status import ErrorReport


class LaunchOutcome(StrEnum):
    """How a launch went."""

    PENDING = "pending"  # requested, queued or waiting for the driver to become healthy
    HEALTHY = "healthy"  # the driver reported that it runs
    FAILED = "failed"  # it ended, or did not become healthy in time


@dataclass(frozen=True)
class LaunchRecord:
    """One Dagster run of a job that acts on a driver: start, restart, drain or stop.

    Attributes:
        id: The run's id.
        requested_at: When the run was made.
        outcome: How it went.
        ended_at: When the outcome was known; None while it is pending.
        attempt: Which one in a row it was: 1 after a driver that lasted, or by a person.
        error: Why it failed, if the driver could say so.
        after: Lease generation at that time; with a higher one, the error is history.
        cause: Kind of error that made the launch necessary, `died`, or empty.
        action: `start`, `restart`, `drain` or `stop`.
    """

    id: str
    requested_at: datetime
    outcome: LaunchOutcome
    ended_at: datetime | None = None
    attempt: int = 1
    error: ErrorReport | None = None
    after: int = 0
    cause: str = ""
    action: str = "start"
