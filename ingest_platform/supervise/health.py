"""What is wrong with a driver whose process lives: hung, stuck, degraded, or just old."""

from __future__ import annotations

from datetime import timedelta

from ingest_platform.model.states import StreamState
from ingest_platform.model.status import Status
from ingest_platform.model.times import parse_time
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.drift import degraded
from ingest_platform.supervise.jitter import fraction
from ingest_platform.supervise.phrases import ago, where
from ingest_platform.supervise.policy import Policy
from ingest_platform.supervise.seen import Seen
from ingest_platform.supervise.trend import age


def hung(status: Status, seen: Seen, policy: Policy) -> str | None:
    """No heartbeat while the process lives: its threads, the JVM or the whole host hang."""
    # A driver that starts has no heartbeat until Spark is up, which a slow disk may delay.
    starting = status.state is StreamState.STARTING
    limit = policy.start_within if starting else policy.hung_after
    if seen.alive is not True or seen.quiet < limit or seen.looks < policy.hung_looks:
        return None
    return f"hung: no heartbeat for {ago(seen.quiet)}, but the process of {where(status)} lives"


def stuck(spec: StreamSpec, status: Status, policy: Policy) -> str | None:
    """Records are unread and the heart beats, but nothing is committed.

    The time begins when the driver last had nothing to do: an idle topic is no stuck stream. A
    stream whose batches always take long gets five times as long.
    """
    updated = parse_time(status.updated_at)
    done = status.last_batch.finished_at if status.last_batch else status.started_at
    since_batch, caught_up = parse_time(done), parse_time(status.caught_up_at)
    if not status.behind or updated is None or since_batch is None:
        return None
    longest = timedelta(seconds=max((b.seconds for b in status.recent), default=0.0))
    limit = max(policy.stuck_after, 5 * longest) + spec.trigger
    since = updated - max(since_batch, caught_up or since_batch)
    if since <= limit:
        return None
    return (
        f"stuck: {status.records_behind} records are unread, "
        f"but nothing was committed for {ago(since)}"
    )


def turnover(spec: StreamSpec, status: Status, seen: Seen, policy: Policy) -> str | None:
    """Why this driver, though it works, should be replaced: drift or age."""
    drift = degraded(status, seen.trend, policy)
    if drift:
        return f"degraded: {drift}"
    limit = age_limit(spec.name, status.generation, policy)
    old = age(status)
    if limit is None or old < limit:
        return None
    return f"planned turnover: {where(status)} is {ago(old)} old"


def age_limit(name: str, generation: int, policy: Policy) -> timedelta | None:
    """The age at which this generation is replaced; None for never.

    Different for each stream and generation, so that streams that were started together are not
    all replaced at the same moment.
    """
    if not policy.max_age:
        return None
    return policy.max_age * (1 - policy.jitter * fraction(name, generation))
