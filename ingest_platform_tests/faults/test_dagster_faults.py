"""The supervisor's own faults: it hangs, dies at the worst moment, loses its memory."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ingest_platform.model.states import StreamState
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.faults.dagster_daemon import Daemon, daemon
from ingest_platform_tests.faults.steered import eventually

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long, QUIET]

RETURN_SECONDS = 60.0


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Daemon]:
    with daemon(tmp_path) as made:
        yield made


def serves(deployed: Daemon, generation: int) -> bool:
    """Whether exactly one driver lives, of this generation or a later one, and is healthy."""
    status = deployed.status()
    return bool(
        status
        and status.generation >= generation
        and status.state is StreamState.RUNNING
        and deployed.drivers() == [status.runs_at.pid]
    )


def beats(deployed: Daemon) -> bool:
    """Whether the driver's heart goes on."""
    before = deployed.status()
    time.sleep(1)
    after = deployed.status()
    return bool(before and after and before.updated_at != after.updated_at)


def end_driver(deployed: Daemon) -> int:
    """Kill it; the generation that must come next."""
    (pid,) = deployed.drivers()
    os.kill(pid, signal.SIGKILL)
    return deployed.generation() + 1


def test_one_driver_whatever_happens_to_the_daemon(deployed: Daemon) -> None:
    """One long story, since a daemon takes long to start."""
    _killed_between_launch_and_cursor(deployed)
    _hung(deployed)
    _database_locked(deployed)
    _database_lost(deployed)


def _killed_between_launch_and_cursor(deployed: Daemon) -> None:
    """Fault 8: the run is in the database, the tick's cursor is not, or just about."""
    eventually(lambda: deployed.runs() > 0, tell=deployed.told)
    deployed.kill()
    deployed.start()
    eventually(lambda: serves(deployed, 1), 180, tell=deployed.told)
    time.sleep(20)  # a tick later there is still one
    assert serves(deployed, 1), deployed.told()


def _hung(deployed: Daemon) -> None:
    """Fault 7: ingest is unaffected, and supervised within a minute of its return."""
    deployed.signal(signal.SIGSTOP)
    assert beats(deployed)
    following = end_driver(deployed)
    time.sleep(5)
    assert deployed.drivers() == []
    deployed.signal(signal.SIGCONT)
    returned = time.monotonic()
    eventually(lambda: serves(deployed, following), tell=deployed.told)
    assert time.monotonic() - returned <= RETURN_SECONDS


def _database_locked(deployed: Daemon) -> None:
    """Fault 31: every write of Dagster's waits or fails; the driver needs none of them."""
    generation = deployed.generation()
    (found,) = deployed.home.rglob("runs.db")
    with closing(sqlite3.connect(found, timeout=30, isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        time.sleep(25)
        assert beats(deployed)
        held.execute("ROLLBACK")
    assert serves(deployed, generation)
    following = end_driver(deployed)
    eventually(lambda: serves(deployed, following), tell=deployed.told)


def _database_lost(deployed: Daemon) -> None:
    """Fault 31: with no memory of any launch it must find the driver that runs."""
    generation, pids = deployed.generation(), deployed.drivers()
    deployed.kill()
    assert beats(deployed)
    deployed.lose_database()
    deployed.start()
    eventually(
        lambda: any("healthy: generation" in said for said in deployed.ticks()),
        tell=lambda: (deployed.ticks(), deployed.told()),
    )
    assert (deployed.generation(), deployed.drivers()) == (generation, pids)
