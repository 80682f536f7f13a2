"""What a decision may depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ingest_platform.model.control import Control
from ingest_platform.model.launches import LaunchRecord
from ingest_platform.model.lease import Lease
from ingest_platform.model.status import Status
from ingest_platform.supervise.trend import Trend


@dataclass(frozen=True)
class Seen:
    """All that a decision may depend on.

    Attributes:
        status: The driver's last status document; None before the first.
        alive: Whether the process that the status names exists; None when that cannot be known
            from here (another host, no status).
        lease: The lease that counts; None before the first driver.
        control: What people want.
        launches: The last launches (runs of the start and restart jobs), oldest first.
        orders: The last runs of the drain, stop and restart jobs, oldest first.
        quiet: How long the status document has not changed, by the supervisor's own watching.
        looks: How often the supervisor has looked meanwhile. One that slept as long as the driver
            (a suspended machine) has no right to call it hung.
        standing: How long the driver's state and what is wanted of it have not changed.
        trend: How this driver's figures developed.
        now: The supervisor's time.
    """

    now: datetime
    status: Status | None = None
    alive: bool | None = None
    lease: Lease | None = None
    control: Control = field(default_factory=Control)
    launches: tuple[LaunchRecord, ...] = ()
    orders: tuple[LaunchRecord, ...] = ()
    quiet: timedelta = timedelta(0)
    looks: int = 3
    standing: timedelta = timedelta(0)
    trend: Trend = field(default_factory=Trend)
