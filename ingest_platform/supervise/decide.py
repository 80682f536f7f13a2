"""The decision: what is seen of a stream, in; the next action and its reason, out.

`decide` asks its questions in the order of their weight: is a driver wanted at all, is there one,
is it well (`_with_driver`); else: is a launch under way, may the driver be replaced, is it time to.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ingest_platform.model.control import Pause
from ingest_platform.model.decisions import Decision, Drain, GiveUp, Start, Stop, Wait
from ingest_platform.model.launches import LaunchOutcome, LaunchRecord
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport, Status
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.health import hung, stuck, turnover
from ingest_platform.supervise.phrases import ago, because, where
from ingest_platform.supervise.policy import Policy
from ingest_platform.supervise.seen import Seen
from ingest_platform.supervise.trend import age

ENDED = {StreamState.STOPPED, StreamState.BACKOFF, StreamState.FAILED}  # a driver's last words
DIED, STOPPED = "died", "stopped"  # causes of an end that left no error


def decide(spec: StreamSpec, seen: Seen, policy: Policy | None = None) -> Decision:
    """The one thing to do now, with the reason that the UI shows.

    Args:
        spec: The stream; its `supervision` section gives the policy.
        seen: What is seen of it.
        policy: Instead of the spec's.
    """
    policy = policy or Policy.of(spec.supervision)
    status = seen.status
    if seen.control.pause:
        return _paused(seen.control.pause, seen, policy)
    if status and present(seen, policy):
        return _with_driver(spec, status, seen, policy)
    under_way = pending((*seen.launches, *seen.orders), seen, policy)
    if under_way:
        since = ago(seen.now - under_way.requested_at)
        return Wait(f"launching: run {under_way.id} was requested {since} ago")
    if seen.lease and seen.lease.purpose == "repair":
        return Wait(f"{seen.lease.purpose} by {seen.lease.holder} holds the lease")
    return _needs_a_person(spec, seen) or _without_driver(spec, seen, policy)


def present(seen: Seen, policy: Policy) -> bool:
    """Whether a driver is there; of one on another host only its heartbeat can tell."""
    if seen.status is None:
        return False
    if seen.alive is None:
        return seen.status.state not in ENDED and seen.quiet < policy.stale
    return seen.alive


def pending(records: Sequence[LaunchRecord], seen: Seen, policy: Policy) -> LaunchRecord | None:
    """The newest run that is under way, unless it is so old that it must be lost."""
    found = [
        r
        for r in records
        if r.outcome is LaunchOutcome.PENDING and seen.now - r.requested_at < policy.launching
    ]
    return max(found, key=lambda r: r.requested_at, default=None)


def _paused(pause: Pause, seen: Seen, policy: Policy) -> Decision:
    still = bool(seen.alive)
    if still and seen.standing >= policy.drain_within:
        stop = Stop(f"paused by {pause.by}, but its driver lives after {ago(seen.standing)}")
        return _unless_asked(stop, seen, policy)
    tail = "; its driver is still there" if still else ""
    return Wait(f"paused by {pause.by} since {pause.since}{because(pause.reason)}{tail}")


def _with_driver(spec: StreamSpec, status: Status, seen: Seen, policy: Policy) -> Decision:
    wish = _leaving(status, seen, policy) or _ailing(spec, status, seen, policy)
    if isinstance(wish, Drain | Stop):
        return _unless_asked(wish, seen, policy)
    if wish:
        return wish
    rate = f"{status.processed_rows_per_second:.0f} rows/s"
    return Wait(f"healthy: {where(status)}, {rate}, {_lag(status)}")


def _leaving(status: Status, seen: Seen, policy: Policy) -> Decision | None:
    """About a driver that shall end, or says that it does; one that takes too long is ended."""
    late = seen.alive is True and seen.standing >= policy.drain_within
    newer = seen.lease.generation if seen.lease else 0
    if newer > status.generation:
        # The driver of the higher generation has yet to write its first status; a driver that is
        # superseded ends by itself at its next heartbeat.
        if seen.alive is True and seen.standing >= policy.start_within:
            return Stop(f"generation {newer} took over, but the process of {where(status)} lives")
        return Wait(f"generation {newer} is taking over from {where(status)}")
    asked = seen.control.drains(status.generation)
    if not asked and status.state not in {*ENDED, StreamState.DRAINING}:
        return None
    state = StreamState.DRAINING if asked and status.state not in ENDED else status.state
    if late:
        return Stop(f"{state} for {ago(seen.standing)}, but the process of {where(status)} lives")
    drain = seen.control.drain
    why = drain.reason if asked and drain and drain.reason else status.reason
    return Wait(f"{state}: {where(status)}{because(why)}")


def _ailing(spec: StreamSpec, status: Status, seen: Seen, policy: Policy) -> Decision | None:
    silent = hung(status, seen, policy)
    if silent:
        return Stop(silent)
    if seen.quiet >= policy.stale:
        silent_for = ago(seen.quiet)
        return Wait(f"no heartbeat for {silent_for}, but the process of {where(status)} lives")
    if status.state not in {StreamState.RUNNING, StreamState.DEGRADED}:
        return Wait(f"{status.state}: {where(status)}{because(status.reason)}")
    idle = stuck(spec, status, policy)
    if idle:
        return Drain(idle, then_start=True, overlap=False)
    return _turnover(spec, status, seen, policy)


def _turnover(spec: StreamSpec, status: Status, seen: Seen, policy: Policy) -> Decision | None:
    why = turnover(spec, status, seen, policy)
    if not why:
        return None
    # However ill the drivers of this stream are, they are replaced once an hour at most.
    wait = min(policy.turnover_every, policy.max_age or policy.turnover_every) - age(status)
    if wait > timedelta(0):
        return Wait(f"{why}; turnover in {ago(wait)}", until=seen.now + wait)
    again = _after_failed_turnover(seen, policy)
    if again > seen.now:
        said = f"{why}; the last turnover failed, the next try is in {ago(again - seen.now)}"
        return Wait(said, until=again, alert=True)
    return Drain(why, then_start=True)


def _after_failed_turnover(seen: Seen, policy: Policy) -> datetime:
    """The driver works, so what keeps its successor from getting ready may be tried seldom."""
    last = seen.orders[-1] if seen.orders else None
    if last is None or last.outcome is not LaunchOutcome.FAILED or last.action != "restart":
        return seen.now
    return (last.ended_at or last.requested_at) + policy.turnover_again


def _unless_asked(wish: Drain | Stop, seen: Seen, policy: Policy) -> Decision:
    """The wish, unless a run for it is under way or has just ended: each run gets its time."""
    under_way = pending(seen.orders, seen, policy)
    if under_way:
        since = ago(seen.now - under_way.requested_at)
        return Wait(
            f"{wish.reason}; {under_way.action}: run {under_way.id} was requested {since} ago"
        )
    last = seen.orders[-1] if seen.orders else None
    again = (last.ended_at or last.requested_at) + policy.order_again if last else seen.now
    if again > seen.now:
        wait = ago(again - seen.now)
        return Wait(f"{wish.reason}; to be asked for again in {wait}", until=again)
    return wish


def _lag(status: Status) -> str:
    if status.oldest_unread_age == 0:
        return "caught up"
    if status.oldest_unread_age is None and not status.behind:
        return "lag not known yet"
    return f"{status.records_behind} records behind"


def _needs_a_person(spec: StreamSpec, seen: Seen) -> GiveUp | None:
    error = last_error(seen)
    if error is None or error.retryable:
        return None
    return GiveUp(
        f"the driver ended with {error.kind}: {error.message}",
        f"{error.remedy}; then run the job {spec.name}_start",
    )


def last_error(seen: Seen) -> ErrorReport | None:
    """The error that ended the last driver, if one did.

    From the last launch where its driver failed before it could write a status.
    """
    last = seen.launches[-1] if seen.launches else None
    generation = seen.lease.generation if seen.lease else 0
    if last and last.error and generation <= last.after:
        return last.error
    status = seen.status
    return status.error if status and status.state in {*ENDED} - {StreamState.STOPPED} else None


def _without_driver(spec: StreamSpec, seen: Seen, policy: Policy) -> Decision:
    error = last_error(seen)
    cause = error.kind if error else _cause(seen)
    failures = policy.backoff.failures(seen.launches, seen.status)
    repeats = policy.backoff.repeats(seen.launches, failures, cause)
    failing = repeats >= policy.failing_after
    reason = _why_gone(seen, error)
    if failing:
        reason = f"failing: {cause} {repeats} times in a row: {reason}"
    at = policy.backoff.next_launch(seen.launches, failures, spec.name)
    if at and at > seen.now:
        again = f"launch {failures + 1} in a row in {ago(at - seen.now)}"
        return Wait(f"backoff: {reason}; {again}", until=at, alert=failing)
    generation = (seen.lease.generation if seen.lease else 0) + 1
    return Start(reason, generation, attempt=failures + 1, cause=cause, alert=failing)


def _cause(seen: Seen) -> str:
    if seen.status and seen.status.state is StreamState.STOPPED:
        return STOPPED
    return DIED if seen.lease or seen.status else ""


def _why_gone(seen: Seen, error: ErrorReport | None) -> str:
    status = seen.status
    if status and seen.alive is None and status.state not in ENDED:
        return f"{where(status)} has not been heard of for {ago(seen.quiet)}"
    if error:
        who = where(status) if status and error is status.error else "the last launch"
        return f"{who} ended with {error.kind}: {error.message}"
    if status is None:
        return "no driver has reported yet" if seen.lease else "never started"
    if status.state is StreamState.STOPPED:
        return f"{where(status)} stopped{because(status.reason)}"
    return f"{where(status)} is dead: process {status.runs_at.pid} is gone"
