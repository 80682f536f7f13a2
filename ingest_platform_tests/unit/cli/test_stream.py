"""`ingest-platform stream start|drain|restart|pause|resume`, with real driver processes."""

from __future__ import annotations

import json
from contextlib import suppress

import psutil
import pytest

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.stores import Stores
from ingest_platform.cli import steering
from ingest_platform.spec import StorageEnvironment, load_spec
from ingest_platform_tests import stand_in_driver


@pytest.fixture
def stores(deployment, monkeypatch, tmp_path):
    """The stream `clicks`, its driver the stand-in; none is left behind."""
    spec = load_spec(deployment.declare("clicks"), {})
    monkeypatch.setenv("INGEST_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setattr(steering, "launcher_of", lambda *_: LocalLauncher(stand_in_driver.COMMAND))
    stores = Stores.of(spec, StorageEnvironment())
    yield stores
    status = stores.status.read("clicks")
    if status:
        LocalLauncher().kill(status.runs_at)
        with suppress(psutil.NoSuchProcess):
            psutil.Process(status.runs_at.pid).wait(timeout=20)


def test_a_streams_day(run, stores):
    """Started twice it is one driver; restarted it is the next; drained it is gone."""
    first = json.loads(run("stream", "start", "clicks", "--json").stdout)
    assert (first["launched"], first["generation"]) == (True, 1)
    again = run("stream", "start", "clicks")
    assert "generation 1, already there" in again.stdout
    second = json.loads(run("stream", "restart", "clicks", "--json", "--reason", "x").stdout)
    assert (second["launched"], second["generation"]) == (True, 2)
    drained = run("stream", "drain", "clicks")
    assert drained.exit_code == 0
    assert "generation 2 has ended" in drained.stdout
    assert "no driver was there" in run("stream", "drain", "clicks").stdout


def test_pause_survives_and_refuses_starts(run, stores):
    """A pause is a document beside the table: no restart of anything takes it away."""
    run("stream", "pause", "clicks", "--reason", "broker move")
    later = json.loads(run("stream", "pause", "clicks", "--reason", "other", "--json").stdout)
    assert later["reason"] == "broker move"
    for command in ("start", "restart"):
        refused = run("stream", command, "clicks")
        assert refused.exit_code == 2
        assert "stream resume clicks" in refused.stderr
    assert stores.lease.current() is None
    assert "no longer paused" in run("stream", "resume", "clicks").stdout
    assert "was not paused" in run("stream", "resume", "clicks").stdout


def test_a_driver_that_refuses_to_start_gives_its_own_error_and_exit_code(run, stores, monkeypatch):
    monkeypatch.setenv("STAND_IN", "refuse")
    result = run("stream", "start", "clicks")
    assert result.exit_code == 3
    assert "no such topic" in result.stderr
    assert "create it" in result.stderr


def test_unknown_stream(run, deployment):
    result = run("stream", "pause", "klicks")
    assert result.exit_code == 2
    assert "no stream 'klicks'" in result.stderr
