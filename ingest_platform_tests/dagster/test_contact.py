"""What the supervisor leaves for a driver that must know whether it is watched."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import this_process
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.components.supervisor import Tick
from ingest_platform.model.control import Pause
from ingest_platform.model.states import StreamState
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.factories import make_status

pytestmark = QUIET


def test_supervisor_leaves_its_contact_once_a_minute(deployment):
    """A write costs money on S3, and its absence a human's night."""
    deployment.stores.status.write(make_status(runs_at=this_process()))
    deployment.tick()
    first = deployment.stores.contact.read()
    assert first
    assert (first.stream, first.state, first.alert) == ("clicks", StreamState.RUNNING, False)
    deployment.tick()
    assert deployment.stores.contact.read() == first
    deployment.stores.control.pause(Pause("ann", first.at, "broker move"))
    deployment.tick()
    paused = deployment.stores.contact.read()
    assert paused
    assert paused.state is StreamState.DRAINING
    assert "paused by ann" in paused.reason


def test_supervisor_whose_ticks_fail_is_silent(deployment):
    """Dagster does not alert on failing ticks; the contact is missing, and so the driver does."""

    def broken() -> TableLog:
        raise RuntimeError("a bug")

    deployment.stores.status.write(make_status(runs_at=this_process()))
    now = datetime.now(UTC)
    tick = Tick(deployment.spec, deployment.stores, LocalLauncher(), broken, now)
    with pytest.raises(RuntimeError, match="a bug"):
        tick.result(deployment.instance, None)
    assert deployment.stores.contact.read() is None
