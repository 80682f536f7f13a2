"""Waiting for a driver that was just launched, until it is healthy or it is clear that it is not.

The looks are passed in, so that this serves every launcher, and the command line beside Dagster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ingest_platform.errors import RetryableFault
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport, Status

POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Healthy:
    """A generation later than the launch reports that it runs: the driver, or a faster rival."""

    status: Status


@dataclass(frozen=True)
class NotHealthy:
    """Why not; `error` is what the driver itself said, if it could."""

    reason: str
    error: ErrorReport | None = None


@dataclass(frozen=True)
class Looks:
    """Where to look.

    Attributes:
        alive: Whether the launched process exists; None when that cannot be known.
        status: The stream's status document.
        last_words: The error that the process left when it ended.
    """

    alive: Callable[[], bool | None]
    status: Callable[[], Status | None]
    last_words: Callable[[], ErrorReport | None]


def await_healthy(
    looks: Looks,
    *,
    after: int,
    seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Healthy | NotHealthy:
    """Look every half second until the answer is known.

    Args:
        looks: Where to look.
        after: Lease generation before the launch.
        seconds: How long to wait. A driver that is merely slow is then left alone: the supervisor
            goes on watching it.
        clock: Monotonic seconds.
        sleep: Waits for so many seconds.
    """
    deadline = clock() + seconds
    while True:
        alive = looks.alive()  # before the look at the status, which the process may still write
        status = _read(looks, after)
        if status and status.state is StreamState.RUNNING:
            return Healthy(status)
        if alive is False or (status and status.state is StreamState.FAILED):
            error = (status.error if status else None) or looks.last_words()
            return NotHealthy("the driver ended before it was healthy", error)
        if clock() >= deadline:
            return NotHealthy(f"the driver is not healthy after {seconds:g} s")
        sleep(POLL_SECONDS)


def _read(looks: Looks, after: int) -> Status | None:
    """The status, if it is of a generation that the launch can have made."""
    try:
        status = looks.status()
    except RetryableFault:
        return None  # the driver may be doing well all the same; the deadline bounds the wait
    return status if status and status.generation > after else None
