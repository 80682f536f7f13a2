"""Turnover with overlap, with real processes: whatever happens to either, the stream is served."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import psutil
import pytest
import yaml

from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.stores import Stores
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import RunsAt, Status
from ingest_platform.spec import StorageEnvironment, load_spec
from ingest_platform.spec.files import COMPONENT_TYPE
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.starting import Started, start
from ingest_platform.steer.turnover import Patience, Refused, turnover
from ingest_platform_tests import stand_in_driver

pytestmark = pytest.mark.slow

PATIENCE = Patience(drain=10, start=20)


class Remembering(LocalLauncher):
    """The launcher, and what it has launched."""

    def __init__(self) -> None:
        super().__init__(stand_in_driver.COMMAND)
        self.launched: list[RunsAt] = []

    def launch(self, launch: Launch) -> RunsAt:
        self.launched.append(super().launch(launch))
        return self.launched[-1]

    def living(self) -> list[RunsAt]:
        return [r for r in self.launched if self.alive(r)]


@pytest.fixture
def reach(tmp_path) -> Iterator[Reach]:
    """A stream with a driver that runs; afterwards no process is left."""
    file = tmp_path / "defs.yaml"
    attributes = {
        "name": "clicks",
        "source": {"topic": "clicks"},
        "decode": {"schema": "id BIGINT"},
        "table": {"path": str(tmp_path / "lake" / "clicks")},
    }
    file.write_text(yaml.safe_dump({"type": COMPONENT_TYPE, "attributes": attributes}))
    launcher = Remembering()
    made = Reach(
        stores=Stores.of(load_spec(file, os.environ), StorageEnvironment()),
        launcher=launcher,
        launch=Launch(file, "clicks", tmp_path / "logs", dict(os.environ)),
        say=lambda _: None,
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        sleep=time.sleep,
    )
    assert isinstance(start(made, 20), Started)
    yield made
    for runs_at in launcher.launched:
        launcher.kill(runs_at)


def driver(reach: Reach) -> Status:
    status = reach.stores.status.read("clicks")
    assert status
    return status


def living(reach: Reach) -> list[int]:
    assert isinstance(reach.launcher, Remembering)
    return [r.pid for r in reach.launcher.living()]


def behaving(reach: Reach, mode: str) -> Reach:
    """Drivers launched from now on behave like this."""
    env = {**reach.launch.env, "STAND_IN": mode}
    return replace(reach, launch=replace(reach.launch, env=env))


def turn(reach: Reach, patience: Patience = PATIENCE, **how: bool) -> object:
    return turnover(reach, patience, by="ann", reason="old", **how)


def ended(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(timeout=20)
    except psutil.NoSuchProcess:
        return True
    return True


def test_successor_is_ready_before_the_driver_is_asked_to_end(reach):
    """Else the gap would be as long as a JVM's start."""
    first, asked = driver(reach).runs_at.pid, []
    word = reach.stores.control.request_drain

    def request(drain):
        asked.append(reach.stores.standby.read())
        word(drain)

    object.__setattr__(reach.stores, "control", _Recording(reach.stores.control, request))
    outcome = turn(reach)
    assert isinstance(outcome, Started)
    assert outcome.status.generation == 2
    assert asked[0].follows == 1
    assert asked[0].runs_at.pid == outcome.status.runs_at.pid
    assert ended(first)
    assert living(reach) == [outcome.status.runs_at.pid]


class _Recording:
    def __init__(self, control, request: Callable) -> None:
        self.read, self.request_drain = control.read, request


def test_refused_successor_leaves_the_driver_alone(reach):
    """A mistake in an edited spec must not stop a stream that runs."""
    before = driver(reach)
    outcome = turn(behaving(reach, "refuse"))
    assert isinstance(outcome, Refused)
    assert outcome.error
    assert outcome.error.kind == "TopicMissingError"
    assert outcome.reason.startswith("generation 1 goes on")
    assert living(reach) == [before.runs_at.pid]
    assert not reach.stores.control.read().drains(1)


@pytest.mark.parametrize("mode", ["exit", "slow"])
def test_successor_that_ends_or_never_gets_ready_leaves_the_driver_alone(reach, mode):
    """Killed by the kernel for want of memory, or broken by a deployment: nobody knows which."""
    before = driver(reach)
    patience = replace(PATIENCE, start=2 if mode == "slow" else 20)
    outcome = turn(behaving(reach, mode), patience)
    assert isinstance(outcome, Refused)
    assert outcome.error is None
    assert outcome.tail == f"stand-in driver: {mode}"
    assert "supervision.overlap: false" in outcome.reason
    assert not reach.stores.control.read().drains(1)
    assert ended(outcome.runs_at.pid)
    assert living(reach) == [before.runs_at.pid]


def test_successor_that_ends_when_its_turn_comes_is_replaced(reach):
    """The driver has ended by then; without another launch nobody would serve the stream."""
    outcome = turn(behaving(reach, "faint"))
    assert isinstance(outcome, Started)
    assert outcome.status.generation == 2
    assert living(reach) == [driver(reach).runs_at.pid]


def test_driver_that_does_not_drain_is_ended_and_its_lease_left_for_it(reach):
    before = driver(reach)
    os.kill(before.runs_at.pid, signal.SIGSTOP)
    outcome = turn(reach, replace(PATIENCE, drain=1))
    assert isinstance(outcome, Started)
    assert outcome.status.generation == 2
    assert ended(before.runs_at.pid)
    assert living(reach) == [outcome.status.runs_at.pid]


def test_dead_driver_is_replaced_by_a_start(reach):
    reach.launcher.kill(driver(reach).runs_at)
    assert ended(driver(reach).runs_at.pid)
    outcome = turn(reach)
    assert isinstance(outcome, Started)
    assert reach.stores.standby.read() is None


def test_without_overlap_on_demand(reach):
    outcome = turn(reach, overlap=False)
    assert isinstance(outcome, Started)
    assert outcome.status.generation == 2
    assert reach.stores.standby.read() is None


def test_rival_that_came_first_goes_on(reach):
    """A supervisor may launch a driver in the very moment in which a successor waits."""
    status = driver(reach)
    waiting = reach.launcher.launch(replace(reach.launch, follows=1))
    while reach.stores.standby.read() is None:
        time.sleep(0.05)
    reach.launcher.kill(status.runs_at)
    assert ended(status.runs_at.pid)
    assert isinstance(start(reach, 20), Started)
    reach.stores.lease.vacate(1, "ann", datetime.now(UTC))
    assert ended(waiting.pid)
    assert driver(reach).generation == 2
    assert driver(reach).state is StreamState.RUNNING
    assert living(reach) == [driver(reach).runs_at.pid]
