"""Drains, restarts, stops and pauses as Dagster runs, with real driver processes."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.components import tags
from ingest_platform.components.supervisor import Tick
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.dagster.conftest import QUIET, Deployment, end

pytestmark = QUIET


@pytest.fixture
def running(deployment) -> Deployment:
    """The stream with its first driver."""
    assert act(deployment, "start").success
    return deployment


def act(deployment: Deployment, action: str) -> dg.ExecuteInProcessResult:
    """A person launches a job in the UI."""
    return deployment.run(dg.RunRequest(job_name=f"clicks_{action}"))


def generation(deployment: Deployment) -> int:
    lease = deployment.stores.lease.current()
    return lease.generation if lease else 0


def alive(deployment: Deployment) -> bool | None:
    status = deployment.stores.status.read("clicks")
    assert status is not None
    return LocalLauncher().alive(status.runs_at)


def look(deployment: Deployment, after: timedelta) -> dg.SensorResult:
    """A sensor tick at a later time."""
    tick = Tick(
        deployment.spec,
        deployment.stores,
        LocalLauncher(),
        lambda: TableLog(deployment.spec.table.path, StorageEnvironment()),
        datetime.now(UTC) + after,
    )
    result = tick.result(deployment.instance, deployment.cursor)
    deployment.cursor = result.cursor
    return result


def test_restart_drains_and_starts_the_successor_in_one_run(running):
    """One run, so that the gap does not wait for the next sensor tick."""
    assert act(running, "restart").success
    assert generation(running) == 2
    assert alive(running)


def test_drained_driver_is_gone_and_a_successor_is_requested(running):
    assert act(running, "drain").success
    assert not alive(running)
    result = look(running, timedelta(minutes=1))
    assert result.run_requests
    assert "generation 1 on" in result.run_requests[0].tags[tags.REASON]


def test_pause_survives_a_restart_run_and_is_shown(running):
    assert act(running, "pause").success
    assert not act(running, "restart").success
    assert generation(running) == 1
    shown = running.tick().skip_reason
    assert shown is not None
    assert "paused by the UI since" in (shown.skip_message or "")
    assert act(running, "resume").success
    assert running.stores.control.read().pause is None


def test_old_driver_is_turned_over_once(running):
    """The sensor asks for one restart, and waits while its run is under way."""
    running.tick()
    status = running.stores.status.read("clicks")
    assert status is not None
    long_ago = (datetime.now(UTC) - timedelta(hours=30)).isoformat()
    os.kill(status.runs_at.pid, signal.SIGSTOP)  # else its own status takes the place of this one
    running.stores.status.write(
        type(status).from_json(status.to_json().replace(status.started_at, long_ago))
    )
    first, second = look(running, timedelta(0)), look(running, timedelta(0))
    assert first.run_requests
    assert second.run_requests
    (request,) = first.run_requests
    assert second.run_requests[0].run_key == request.run_key
    assert request.job_name == "clicks_restart"
    assert request.tags[tags.REASON].startswith("planned turnover: generation 1")
    os.kill(status.runs_at.pid, signal.SIGCONT)
    assert running.run(request).success
    assert generation(running) == 2


def test_hung_driver_is_stopped_and_replaced(running):
    """Its process lives but is stopped: neither document nor signal reaches it."""
    status = running.stores.status.read("clicks")
    assert status is not None
    os.kill(status.runs_at.pid, signal.SIGSTOP)
    try:
        for minutes in (0, 1):
            assert not look(running, timedelta(minutes=minutes)).run_requests
        requests = look(running, timedelta(minutes=2.5)).run_requests
        assert requests
        assert requests[0].job_name == "clicks_stop"
        assert requests[0].tags[tags.REASON].startswith("hung: no heartbeat for ")
        assert running.run(requests[0]).success
    finally:
        end(status.runs_at)
    (start,) = look(running, timedelta(minutes=4)).run_requests or []
    assert start.job_name == "clicks_start"
    assert start.tags[tags.GENERATION] == "2"
