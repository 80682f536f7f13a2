"""`demo` and `dev`, as far as they go without starting anything."""

from __future__ import annotations

import os
import shutil
import signal
from collections import namedtuple
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ingest_platform.cli.demo_view import status_line
from ingest_platform.cli.interrupts import Interrupts
from ingest_platform.cli.live_line import LiveLine
from ingest_platform.embedded.demo import Look
from ingest_platform.embedded.demo_settings import write_shell_variables
from ingest_platform.embedded.folder import claim
from ingest_platform.embedded.services import without_foreign
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport, Status

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INGEST_DEMO_DIR", str(tmp_path / "demo"))
    return tmp_path / "demo"


def test_forgetting_removes_the_data(run, folder):
    (folder / "kafka").mkdir(parents=True)
    result = run("demo", "--forget")
    assert result.exit_code == 0
    assert "removed" in result.stdout
    assert not folder.exists()


def test_forgetting_nothing_is_no_error(run, folder):
    result = run("demo", "--forget")
    assert result.exit_code == 0
    assert "there is no" in result.stdout
    assert not folder.exists()


@pytest.mark.parametrize("options", [["--forget"], ["--seconds", "5"]])
def test_a_running_demo_is_left_alone(run, folder, options):
    """Its data must not vanish under it, nor a second one start on the same data."""
    with claim(folder, service="demo", owner_pid=os.getpid()):
        result = run("demo", *options)
    assert result.exit_code == 3
    assert f"the data of the demo is in use by process {os.getpid()}" in result.stderr
    assert folder.exists()


def test_a_full_disk_is_told_before_anything_starts(run, folder, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(10**9, 10**9, 5 * 10**7))
    result = run("demo", "--seconds", "5")
    assert result.exit_code == 3
    assert "0.05 GB are free" in result.stderr
    assert "remedy" in result.stderr


def test_a_taken_port_is_told_before_anything_starts(run, folder):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("demo", "--port", str(port))
    assert result.exit_code == 3
    assert f"port {port} for Dagster is in use" in result.stderr


def test_wrong_options_are_mistakes_of_the_user(run, folder):
    assert run("demo", "--seconds", "0").exit_code == 2
    assert run("demo", "--rate", "-1").exit_code == 2
    assert not folder.exists()


def test_the_users_own_clusters_do_not_reach_the_demo():
    """A demo that wrote into the company's bucket would be the worst bug of all."""
    found = without_foreign(
        {
            "AWS_ENDPOINT_URL_S3": "https://s3.example.com",
            "AWS_SESSION_TOKEN": "t",
            "KAFKA_BOOTSTRAP_SERVERS": "prod:9092",
            "DAGSTER_HOME": "/prod",
            "INGEST_LAKE": "s3a://prod",
            "PATH": "/bin",
            "NO_PROXY": "example.com",
        }
    )
    loopback = "127.0.0.1,localhost"
    assert found == {"PATH": "/bin", "NO_PROXY": f"example.com,{loopback}", "no_proxy": loopback}


def test_shell_variables_can_be_sourced(tmp_path):
    write_shell_variables(tmp_path / "env.sh", {"INGEST_LAKE": "s3a://lake"})
    assert "export INGEST_LAKE='s3a://lake'\n" in (tmp_path / "env.sh").read_text()


def test_the_line_tells_what_it_waits_for():
    assert "waiting for Dagster to launch the driver" in status_line(Look(4000, 0, None))


def test_the_line_tells_the_last_batch():
    batch = BatchReport(
        rows=20_000,
        quarantined=20,
        seconds=1.5,
        finished_at=(NOW - timedelta(seconds=3)).isoformat(),
    )
    status = Status(state=StreamState.RUNNING, last_batch=batch, table_version=7)
    line = status_line(Look(40_000, 20_020, status), NOW)
    assert "produced 40,000 · ingested 20,020" in line
    assert "20,020 rows in 1.5 s, 3 s ago · table version 7 · driver running" in line


def test_a_log_gets_a_line_now_and_then():
    """A CI log with a line per second helps nobody."""
    out = StringIO()
    with LiveLine(Console(file=out), every=60) as line:
        for number in range(50):
            line.show(f"look {number}")
    assert out.getvalue() == "look 0\n"


def test_the_first_signal_asks_for_an_end_and_the_second_for_haste():
    hastened: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts(haste=lambda: hastened.append(1)):
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert hastened == [1]
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_orderly_end_is_not_interrupted():
    hastened: list[int] = []
    with Interrupts(haste=lambda: hastened.append(1)) as interrupts:
        interrupts.hold()
        os.kill(os.getpid(), signal.SIGINT)
    assert hastened == [1]
