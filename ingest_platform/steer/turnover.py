"""Replace a driver by one whose JVM is up already, so that the gap is seconds.

The order is what keeps the stream served: the present driver is asked to end only when its
successor waits for the lease. A successor that cannot get ready, for a mistake in an edited spec, a
broken deployment or want of memory, leaves the present driver alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ingest_platform.model.status import ErrorReport, RunsAt, Status
from ingest_platform.steer.ending import StillThere, drain, stop
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.starting import (
    NotStarted,
    Started,
    healthy,
    refuse_if_paused,
    start,
)

_POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Patience:
    """Seconds: until a drain is cut short, and until a driver is ready or healthy."""

    drain: float
    start: float


@dataclass(frozen=True)
class Refused:
    """No successor got ready: generation `goes_on`, which was asked nothing, writes as before.

    `error` is what the successor itself said, if it could; `tail` the end of its log.
    """

    goes_on: int
    runs_at: RunsAt
    tail: str
    error: ErrorReport | None = None

    @property
    def reason(self) -> str:
        """In a sentence."""
        return (
            f"generation {self.goes_on} goes on, since no successor got ready beside it; if this "
            "host has no memory for two drivers, set supervision.overlap: false"
        )


def turnover(
    reach: Reach, patience: Patience, *, by: str, reason: str, overlap: bool = True
) -> Started | NotStarted | Refused:
    """Get a successor ready, drain the driver, and wait until the successor is healthy.

    Without a driver to replace, it is a start. A driver that does not drain in time is ended.

    Raises:
        StreamPausedError: Someone paused the stream; nothing was done.
    """
    refuse_if_paused(reach)
    before = reach.stores.status.read(reach.name)
    successor = _successor(reach, before, patience) if overlap and before else None
    if isinstance(successor, Refused):
        return successor
    ended = drain(reach, by=by, reason=reason, seconds=patience.drain)
    if isinstance(ended, StillThere):
        reach.say(f"Generation {ended.generation} is ended: {ended.reason}.")
        stop(reach, before)
    if successor is None or before is None:
        return start(reach, patience.start)
    # The driver says so itself, unless it was killed: then nobody else would.
    reach.stores.lease.vacate(before.generation, by, reach.now())
    outcome = healthy(reach, successor, before.generation, patience.start)
    if isinstance(outcome, Started) or reach.launcher.alive(successor) is not False:
        return outcome
    reach.say(f"The successor has ended ({outcome.reason}): launching another driver.")
    return start(reach, patience.start)


def _successor(reach: Reach, before: Status, patience: Patience) -> RunsAt | Refused | None:
    """A driver that is ready to take over; None if there is none to take over from."""
    lease = reach.stores.lease.current()
    if lease is None or lease.generation != before.generation:
        return None  # one is taking over already
    if reach.launcher.alive(before.runs_at) is False:
        return None
    runs_at = reach.launcher.launch(replace(reach.launch, follows=before.generation))
    reach.say(f"Launched the successor, {runs_at.name}; its log: {runs_at.log}")
    try:
        ready = _await_ready(reach, runs_at, before.generation, patience.start)
    except BaseException:
        reach.launcher.kill(runs_at)  # whoever runs this gives up: no one would wait for it
        raise
    if ready:
        reach.say("The successor is ready.")
        return runs_at
    error = reach.launcher.last_words(runs_at)
    tail = reach.launcher.log_tail(runs_at)
    reach.launcher.kill(runs_at)
    return Refused(before.generation, runs_at, tail, error)


def _await_ready(reach: Reach, runs_at: RunsAt, follows: int, seconds: float) -> bool:
    deadline = reach.clock() + seconds
    while reach.clock() < deadline:
        alive = reach.launcher.alive(runs_at)  # before the look at its word
        word = reach.stores.standby.read()
        if word and word.follows == follows and word.runs_at.same_process(runs_at):
            return alive is not False
        if alive is False:
            return False
        reach.sleep(_POLL_SECONDS)
    return False
