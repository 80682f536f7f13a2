"""A planned turnover of real drivers under load, and the end of one that hangs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest_platform.adapters.processes import session_members
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.model.status import Status
from ingest_platform.steer.ending import stop
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.starting import Started, start
from ingest_platform.steer.turnover import Patience, turnover
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.faults.steered import committed, eventually, launcher_of, steering
from ingest_platform_tests.topic_records import steady_load

pytestmark = [pytest.mark.slow, pytest.mark.fault]


def test_turnover_under_load(
    kafka: KafkaServer, topic: Callable[..., str], deploy: Callable[..., DeployedStream]
) -> None:
    """Two JVMs at once, one writer: no record is amiss, and one driver is left."""
    name = topic(2)
    stream = deploy(name, "id BIGINT", trigger="1s")
    with steering(stream) as reach:
        with steady_load(kafka.bootstrap_servers, name) as places:
            assert isinstance(start(reach, 120), Started)
            eventually(lambda: committed(stream, 1) is not None, tell=stream.status)
            outcome = turnover(reach, Patience(drain=60, start=120), by="test", reason="test")
            assert isinstance(outcome, Started), outcome
            eventually(lambda: committed(stream, 2) is not None, tell=stream.status)
        eventually(lambda: sum(stream.held().values()) >= len(places), tell=stream.status)
        status = committed(stream, 2)
        assert status
        assert [r.pid for r in launcher_of(reach).living()] == [status.runs_at.pid]
        _hung_driver_leaves_a_thread_dump(reach, status)
    stream.assert_holds(places)


def _hung_driver_leaves_a_thread_dump(reach: Reach, status: Status) -> None:
    """The driver's process is stopped, its JVM is not: what that does is what a person asks."""
    os.kill(status.runs_at.pid, signal.SIGSTOP)
    assert reach.launcher.alive(status.runs_at)
    assert stop(reach).generation == 2
    assert "Full thread dump" in Path(status.runs_at.log).read_text(errors="replace")
    eventually(lambda: not _left(status), tell=lambda: _left(status))


def _left(status: Status) -> list[int]:
    return session_members(status.runs_at.pid, since_ticks=status.runs_at.started_ticks)
