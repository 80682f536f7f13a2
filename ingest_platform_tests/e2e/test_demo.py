"""The demo as a new user runs it, only shorter: everything real, nothing lost, nothing left."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from ingest_platform_tests.browser.chromium import chromium, missing
from ingest_platform_tests.browser.pages import COMPACTION, open_page
from ingest_platform_tests.demo_process import DemoProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# The machine that runs this may be busy; the records are as real at a lower rate.
RATE = "1000"


def test_a_bounded_demo_proves_that_nothing_is_lost_and_leaves_nothing(tmp_path: Path) -> None:
    """Kafka to Delta through Dagster's own sensor, audited against the producer's own count."""
    folder = tmp_path / "demo"
    with DemoProcess.start(folder, "--seconds", "30", "--rate", RATE) as demo:
        assert demo.popen.wait(600) == 0, demo.output
        assert "nothing lost, nothing doubled" in demo.output
        reported = re.search(r"Dagster reported (\d+) materializations of clicks", demo.output)
        assert reported
        assert int(reported[1]) >= 1
        assert demo.wait_until_gone() == []
    receipts = json.loads((folder / "producer.json").read_text())
    assert receipts["done"]
    assert sum(count for _, _, count in receipts["partitions"].values()) > 10_000
    assert (folder / "logs" / "clicks" / "driver.log").stat().st_size > 0


@pytest.mark.long
def test_five_minutes_show_compaction_and_vacuum(tmp_path: Path) -> None:
    """By schedules, with real work, plotted in the UI, and without a trace in the audit."""
    pace = {"report_every": "30 seconds", "compact_every": "1 minute"}
    with DemoProcess.start(tmp_path / "demo", "--seconds", "300", "--rate", RATE, **pace) as demo:
        told = demo.wait_for(
            "clicks_compaction",
            lambda found: any(m.numbers.get("files_removed") for m in found),
            400,
        )
        [first, *_] = [m.numbers for m in told if m.numbers.get("files_removed")]
        assert first["files_removed"] >= 20
        assert first["files_added"] < first["files_removed"]
        assert first["commits"] >= 1
        assert first["bytes_rewritten"] > 0
        assert demo.wait_for("clicks_vacuum", bool, 120)
        if missing() is None:
            with chromium() as browser:
                text = open_page(browser, demo.url(), COMPACTION)
            assert "partitions_compacted" in text
        assert demo.popen.wait(600) == 0, demo.output
        assert "nothing lost, nothing doubled" in demo.output
        assert demo.wait_until_gone() == []


def test_a_demo_that_is_killed_leaves_nothing_and_goes_on(tmp_path: Path) -> None:
    """The out-of-memory killer, a crash: no driver may go on alone, and no data is hurt.

    The second run's audit covers what the first one made, too.
    """
    folder = tmp_path / "demo"
    with DemoProcess.start(folder, "--rate", RATE) as first:
        first.wait_for_materializations(1)
        os.kill(first.popen.pid, signal.SIGKILL)
        first.popen.wait()
        assert first.wait_until_gone() == []
    with DemoProcess.start(folder, "--seconds", "10", "--rate", RATE) as second:
        assert second.popen.wait(600) == 0, second.output
        assert "nothing lost, nothing doubled" in second.output
        assert second.wait_until_gone() == []


def test_a_demo_whose_broker_dies_says_so_and_ends(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with DemoProcess.start(folder, "--rate", RATE) as demo:
        demo.url()
        [broker] = [p for p in demo.processes() if "kafka.Kafka" in p]
        os.kill(int(broker.split()[0]), signal.SIGKILL)
        assert demo.popen.wait(180) == 3, demo.output
        assert "the Kafka broker ended with exit code -9" in demo.output
        assert demo.wait_until_gone() == []
