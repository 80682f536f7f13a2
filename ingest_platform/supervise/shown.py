"""The one state of a stream that UI, command line and alerts show, derived from what is seen."""

from __future__ import annotations

from dataclasses import dataclass

from ingest_platform.model.decisions import Decision, Drain, GiveUp, Start, Stop, Wait
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import Status
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.decide import ENDED, decide, pending, present
from ingest_platform.supervise.health import stuck, turnover
from ingest_platform.supervise.policy import Policy
from ingest_platform.supervise.seen import Seen


@dataclass(frozen=True)
class Shown:
    """State and reason; `alert` says that a person should know."""

    state: StreamState
    reason: str
    alert: bool = False


def shown(spec: StreamSpec, seen: Seen) -> Shown:
    """What to show. The reason is the decision's own, so that none tells another story."""
    policy = Policy.of(spec.supervision)
    decision = decide(spec, seen, policy)
    alert = isinstance(decision, GiveUp | Stop) or (
        isinstance(decision, Start | Wait) and decision.alert
    )
    return Shown(_state(spec, seen, policy, decision), decision.reason, alert)


def _state(spec: StreamSpec, seen: Seen, policy: Policy, decision: Decision) -> StreamState:
    if seen.status and present(seen, policy):
        return _of_driver(spec, seen.status, seen, policy, decision)
    if isinstance(decision, GiveUp):
        return StreamState.FAILED
    if seen.control.pause or (seen.lease and seen.lease.purpose == "repair"):
        return StreamState.STOPPED
    if pending((*seen.launches, *seen.orders), seen, policy):
        return StreamState.STARTING
    ended = seen.status is not None and seen.status.state is StreamState.STOPPED
    never = seen.status is None and not seen.launches
    return StreamState.STOPPED if ended or never else StreamState.BACKOFF


def _of_driver(
    spec: StreamSpec, status: Status, seen: Seen, policy: Policy, decision: Decision
) -> StreamState:
    if status.state in ENDED:
        return status.state
    if seen.control.pause or seen.control.drains(status.generation):
        return StreamState.DRAINING
    if status.state is not StreamState.RUNNING:
        return status.state
    ill = isinstance(decision, Drain | Stop) or seen.quiet >= policy.stale
    ill = ill or bool(stuck(spec, status, policy) or turnover(spec, status, seen, policy))
    return StreamState.DEGRADED if ill else StreamState.RUNNING
