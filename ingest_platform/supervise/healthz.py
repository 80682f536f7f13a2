"""Whether a driver is healthy, as it says of itself to whoever asks over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ingest_platform.model.states import StreamState
from ingest_platform.model.status import Status
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.health import stuck
from ingest_platform.supervise.phrases import ago
from ingest_platform.supervise.policy import Policy

_AT_WORK = {StreamState.RUNNING, StreamState.DEGRADED, StreamState.DRAINING}


@dataclass(frozen=True)
class Healthz:
    """The answer; `reason` says why not, or what trouble a healthy driver waits for to end."""

    healthy: bool
    reason: str


def healthz(spec: StreamSpec, status: Status, beat_age: timedelta) -> Healthz:
    """Judge a driver.

    A broker or storage that is away does not make it unhealthy: ending it, as Kubernetes would,
    helps nothing, and the supervisor judges that better.

    Args:
        spec: The stream.
        status: What the driver says of itself.
        beat_age: How long ago its heartbeat last went round.
    """
    policy = Policy.of(spec.supervision)
    if status.state not in _AT_WORK:
        return Healthz(healthy=False, reason=f"{status.state}: {status.reason}")
    if beat_age >= policy.stale:
        return Healthz(healthy=False, reason=f"stale: no heartbeat for {ago(beat_age)}")
    idle = stuck(spec, status, policy)
    if idle:
        return Healthz(healthy=False, reason=idle)
    trouble = f"; {status.error.kind}: {status.error.message}" if status.error else ""
    return Healthz(healthy=True, reason=f"{status.state}: {status.reason}{trouble}")
