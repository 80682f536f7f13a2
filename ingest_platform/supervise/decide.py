"""The decision: what is seen of a stream, in; the next action and its reason, out.

`decide` asks its questions in the order of their weight: is a driver wanted at all, is a launch
under way, is there a driver, may it be replaced, is it time to. The finer health (hung, stuck,
degraded) belongs in `_with_driver`, the classes of errors in `_without_driver`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ingest_platform.model.control import Control, Pause
from ingest_platform.model.decisions import Decision, GiveUp, Start, Wait
from ingest_platform.model.launches import LaunchOutcome, LaunchRecord
from ingest_platform.model.lease import Lease
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport, Status
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.backoff import Backoff


@dataclass(frozen=True)
class Seen:
    """All that a decision may depend on.

    Attributes:
        status: The driver's last status document; None before the first.
        alive: Whether the process that the status names exists; None when that cannot be known
            from here (another host, no status).
        lease: The lease that counts; None before the first driver.
        control: What people want.
        launches: The last launches, oldest first.
        quiet: How long the status document has not changed, by the supervisor's own watching.
        now: The supervisor's time.
    """

    now: datetime
    status: Status | None = None
    alive: bool | None = None
    lease: Lease | None = None
    control: Control = field(default_factory=Control)
    launches: tuple[LaunchRecord, ...] = ()
    quiet: timedelta = timedelta(0)


@dataclass(frozen=True)
class Policy:
    """The limits that decisions use.

    Attributes:
        backoff: Between launches that do not last.
        stale: A heartbeat this old is late: drivers write one every 10 s at least.
        launching: A launch whose outcome is not known after this time is lost. The lease sees to
            it that a late one does no harm.
    """

    backoff: Backoff = field(default_factory=Backoff)
    stale: timedelta = timedelta(seconds=60)
    launching: timedelta = timedelta(minutes=10)


_POLICY = Policy()
_ENDED = {StreamState.STOPPED, StreamState.BACKOFF, StreamState.FAILED}  # a driver's last words


def decide(spec: StreamSpec, seen: Seen, policy: Policy = _POLICY) -> Decision:
    """The one thing to do now, with the reason that the UI shows."""
    if seen.control.pause:
        return Wait(_paused(seen.control.pause, bool(seen.alive)))
    if seen.status and _present(seen, policy):
        return _with_driver(seen.status, seen, policy)
    pending = _pending(seen, policy)
    if pending:
        since = _ago(seen.now - pending.requested_at)
        return Wait(f"launching: run {pending.id} was requested {since} ago")
    if seen.lease and seen.lease.purpose != "stream":
        return Wait(f"{seen.lease.purpose} by {seen.lease.holder} holds the lease")
    return _needs_a_person(spec, seen) or _without_driver(seen, policy)


def _pending(seen: Seen, policy: Policy) -> LaunchRecord | None:
    for launch in reversed(seen.launches):
        if launch.outcome is LaunchOutcome.PENDING:
            return launch if seen.now - launch.requested_at < policy.launching else None
    return None


def _needs_a_person(spec: StreamSpec, seen: Seen) -> GiveUp | None:
    error = _last_error(seen)
    if error is None or error.retryable:
        return None
    return GiveUp(
        f"the driver ended with {error.kind}: {error.message}",
        f"{error.remedy}; then run the job {spec.name}_start",
    )


def _last_error(seen: Seen) -> ErrorReport | None:
    """From the last launch, whose driver may have failed before it could write a status."""
    last = seen.launches[-1] if seen.launches else None
    generation = seen.lease.generation if seen.lease else 0
    if last and last.error and generation <= last.after:
        return last.error
    status = seen.status
    return status.error if status and status.state is StreamState.FAILED else None


def _present(seen: Seen, policy: Policy) -> bool:
    """Whether a driver is there; of one on another host only its heartbeat can tell."""
    if seen.alive is None:
        ended = seen.status and seen.status.state in _ENDED
        return not ended and seen.quiet < policy.stale
    return seen.alive


def _with_driver(status: Status, seen: Seen, policy: Policy) -> Decision:
    where = f"generation {status.generation} on {status.runs_at.host}"
    if seen.lease and seen.lease.generation > status.generation:
        return Wait(f"generation {seen.lease.generation} is taking over from {where}")
    if seen.quiet >= policy.stale:
        return Wait(f"no heartbeat for {_ago(seen.quiet)}, but the process of {where} lives")
    if status.state is not StreamState.RUNNING:
        return Wait(f"{status.state}: {where}{_because(status.reason)}")
    rate = f"{status.processed_rows_per_second:.0f} rows/s"
    return Wait(f"healthy: {where}, {rate}, {_lag(status)}")


def _lag(status: Status) -> str:
    if status.oldest_unread_age == 0:
        return "caught up"
    if status.oldest_unread_age is None and not status.behind:
        return "lag not known yet"
    return f"{status.records_behind} records behind"


def _without_driver(seen: Seen, policy: Policy) -> Decision:
    reason = _why_gone(seen)
    failures = policy.backoff.failures(seen.launches, seen.status)
    at = policy.backoff.next_launch(seen.launches, failures)
    if at and at > seen.now:
        wait = _ago(at - seen.now)
        return Wait(f"backoff: {reason}; launch {failures + 1} in a row in {wait}", until=at)
    generation = (seen.lease.generation if seen.lease else 0) + 1
    return Start(reason, generation, attempt=failures + 1)


def _why_gone(seen: Seen) -> str:
    status = seen.status
    if status is None:
        return "no driver has reported yet" if seen.lease else "never started"
    where = f"generation {status.generation} on {status.runs_at.host}"
    if seen.alive is None and status.state not in _ENDED:
        return f"{where} has not been heard of for {_ago(seen.quiet)}"
    if status.error:
        return f"{where} ended with {status.error.kind}: {status.error.message}"
    if status.state is StreamState.STOPPED:
        return f"{where} stopped{_because(status.reason)}"
    return f"{where} is dead: process {status.runs_at.pid} is gone"


def _paused(pause: Pause, alive: bool) -> str:
    still = "; its driver is still there" if alive else ""
    return f"paused by {pause.by} since {pause.since}{_because(pause.reason)}{still}"


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _ago(span: timedelta) -> str:
    seconds = max(0, round(span.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
