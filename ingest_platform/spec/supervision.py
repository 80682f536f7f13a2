"""When a driver is replaced, and how patiently: the `supervision` section of a stream's spec."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from ingest_platform.spec.fields import Duration, Frozen


class SupervisionSpec(Frozen):
    """Limits of the supervisor's decisions; the defaults suit triggers from 0 to minutes."""

    max_age: Duration = Field(
        default=timedelta(hours=20), description="A driver this old is replaced, planned; 0: never."
    )
    jitter: float = Field(
        default=0.1,
        ge=0,
        le=0.5,
        description="Turnover by age comes up to this part of max_age earlier.",
    )
    turnover_every: Duration = Field(
        default=timedelta(hours=1), description="A degraded driver is not replaced before this age."
    )
    hung_after: Duration = Field(
        default=timedelta(minutes=2), description="No heartbeat for so long: the driver is ended."
    )
    start_within: Duration = Field(
        default=timedelta(minutes=10), description="The same while the driver starts."
    )
    stuck_after: Duration = Field(
        default=timedelta(minutes=15),
        description="Records unread, none committed for so long: replaced.",
    )
    drain_within: Duration = Field(
        default=timedelta(minutes=2),
        description="A driver asked to drain is ended after this time.",
    )
    overlap: bool = Field(
        default=True,
        description="Start a successor's JVM before the drain; needs memory for two for a minute.",
    )
    backoff_first: Duration = Field(
        default=timedelta(seconds=2),
        description="Wait after one launch that did not last; doubles.",
    )
    backoff_cap: Duration = Field(default=timedelta(minutes=5), description="Longest such wait.")
    failing_after: int = Field(
        default=3, ge=2, description="The same error so many times in a row is told as failing."
    )
    drift_ratio: float = Field(
        default=2.0,
        gt=1,
        description="Batches this many times slower than the driver's own baseline.",
    )
    gc_share: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        description="Part of the time that the JVM may spend on collections.",
    )

    @model_validator(mode="after")
    def _sane(self) -> Self:
        if self.max_age and self.max_age < timedelta(minutes=10):
            raise ValueError("`max_age` must be 0 (never) or at least 10 minutes")
        if self.hung_after < timedelta(minutes=1):
            raise ValueError("`hung_after` must be at least 60 seconds: heartbeats come every 10 s")
        if self.drain_within < timedelta(seconds=45):
            raise ValueError("`drain_within` must be at least 45 seconds: drivers may take 30 s")
        for name in ("turnover_every", "start_within", "stuck_after"):
            if getattr(self, name) < timedelta(minutes=1):
                raise ValueError(f"`{name}` must be at least 1 minute")
        if not timedelta(seconds=1) <= self.backoff_first <= self.backoff_cap:
            raise ValueError("needs 1 second <= backoff_first <= backoff_cap")
        return self
