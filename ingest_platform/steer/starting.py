"""Start a stream's driver, and wait until it is healthy."""

from __future__ import annotations

from dataclasses import dataclass

from ingest_platform.errors import StreamPausedError
from ingest_platform.model.status import ErrorReport, RunsAt, Status
from ingest_platform.steer.reach import Reach
from ingest_platform.supervise.launching import Looks, NotHealthy, await_healthy


@dataclass(frozen=True)
class Started:
    """A driver runs; `runs_at` is the process that was launched, None if one ran already."""

    status: Status
    runs_at: RunsAt | None = None


@dataclass(frozen=True)
class NotStarted:
    """The driver ended, or is not healthy yet.

    Attributes:
        reason: Which of the two.
        runs_at: The process that was launched.
        tail: The end of its log.
        after: Lease generation before the launch.
        error: What the driver itself said, if it could.
    """

    reason: str
    runs_at: RunsAt
    tail: str
    after: int
    error: ErrorReport | None = None


def start(reach: Reach, seconds: float) -> Started | NotStarted:
    """Launch a driver, unless one runs, and wait up to `seconds` until it is healthy.

    Raises:
        StreamPausedError: Someone paused the stream.
    """
    stores, launcher = reach.stores, reach.launcher
    refuse_if_paused(reach)
    before = stores.status.read(reach.name)
    if before and launcher.alive(before.runs_at):
        reach.say(f"Nothing to do: generation {before.generation} runs.")
        return Started(before)
    if before and launcher.kill(before.runs_at):
        reach.say(f"Ended what generation {before.generation} had left behind.")
    lease = stores.lease.current()
    after = lease.generation if lease else 0
    runs_at = launcher.launch(reach.launch)
    reach.say(f"Launched {runs_at.name}; its log: {runs_at.log}")
    return healthy(reach, runs_at, after, seconds)


def healthy(reach: Reach, runs_at: RunsAt, after: int, seconds: float) -> Started | NotStarted:
    """Wait up to `seconds` until the driver that was launched is healthy.

    Args:
        reach: The stream.
        runs_at: Where the driver was launched.
        after: Lease generation before it.
        seconds: How long to wait.
    """
    stores, launcher = reach.stores, reach.launcher
    outcome = await_healthy(
        Looks(
            alive=lambda: launcher.alive(runs_at),
            status=lambda: stores.status.read(reach.name),
            last_words=lambda: launcher.last_words(runs_at),
        ),
        after=after,
        seconds=seconds,
        clock=reach.clock,
        sleep=reach.sleep,
    )
    if isinstance(outcome, NotHealthy):
        tail = launcher.log_tail(runs_at)
        return NotStarted(outcome.reason, runs_at, tail, after, outcome.error)
    status = outcome.status
    reach.say(f"Generation {status.generation} is healthy on {status.runs_at.host}.")
    return Started(status, runs_at)


def refuse_if_paused(reach: Reach) -> None:
    """Do nothing.

    Raises:
        StreamPausedError: Someone paused the stream.
    """
    pause = reach.stores.control.read().pause
    if pause:
        because = f" ({pause.reason})" if pause.reason else ""
        raise StreamPausedError(
            f"{reach.name} is paused by {pause.by} since {pause.since}{because}",
            remedy=f"resume it first: ingest-platform stream resume {reach.name}",
        )
