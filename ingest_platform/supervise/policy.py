"""The limits that decisions use."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from ingest_platform.spec import SupervisionSpec
from ingest_platform.supervise.backoff import Backoff


@dataclass(frozen=True)
class Policy:
    """Limits; `SupervisionSpec` describes those that a spec may set.

    Attributes:
        stale: A heartbeat this old is late: drivers write one every 10 s at least.
        hung_looks: So many looks at the same heartbeat before a driver is called hung.
        launching: A run whose outcome is not known after this time is lost. The lease sees to
            it that a late one does no harm.
        turnover_again: Time after a turnover that failed before another is tried.
        order_again: Time after a drain, stop or restart before another may be asked for.
        heap_full: Part of the heap that is live after collections.
        heap_horizon: A heap that would be full in so long, as it rises now, is about to be.
    """

    backoff: Backoff = field(default_factory=Backoff)
    stale: timedelta = timedelta(seconds=60)
    hung_after: timedelta = timedelta(minutes=2)
    hung_looks: int = 3
    start_within: timedelta = timedelta(minutes=10)
    stuck_after: timedelta = timedelta(minutes=15)
    drain_within: timedelta = timedelta(minutes=2)
    launching: timedelta = timedelta(minutes=10)
    order_again: timedelta = timedelta(minutes=2)
    turnover_again: timedelta = timedelta(minutes=15)
    max_age: timedelta = timedelta(hours=20)
    jitter: float = 0.1
    turnover_every: timedelta = timedelta(hours=1)
    failing_after: int = 3
    drift_ratio: float = 2.0
    gc_share: float = 0.2
    heap_full: float = 0.9
    heap_horizon: timedelta = timedelta(hours=2)

    @classmethod
    def of(cls, spec: SupervisionSpec) -> Policy:
        """The policy that a spec asks for."""
        return cls(
            backoff=Backoff(first=spec.backoff_first, cap=spec.backoff_cap),
            hung_after=spec.hung_after,
            start_within=spec.start_within,
            stuck_after=spec.stuck_after,
            drain_within=spec.drain_within,
            max_age=spec.max_age,
            jitter=spec.jitter,
            turnover_every=spec.turnover_every,
            failing_after=spec.failing_after,
            drift_ratio=spec.drift_ratio,
            gc_share=spec.gc_share,
        )
