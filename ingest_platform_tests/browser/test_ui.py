"""What a visitor sees: the running demo in a real browser, and Ctrl-C afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from ingest_platform_tests.browser.chromium import chromium, missing
from ingest_platform_tests.browser.pages import ASSET, LINEAGE, SENSOR, open_page
from ingest_platform_tests.demo_process import DemoProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    folder = tmp_path_factory.mktemp("ui") / "demo"
    with DemoProcess.start(folder, "--rate", "500") as running:
        running.wait_for_materializations(2)
        yield running
        assert running.interrupt() == 0, running.output
        assert running.wait_until_gone() == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def screenshot(request: pytest.FixtureRequest, browser: Chrome, tmp_path: Path) -> Iterator[Path]:
    """A picture of the page as the test left it, beside the test's other files."""
    path = tmp_path / f"{request.node.name}.png"
    yield path
    browser.save_screenshot(str(path))
    assert path.stat().st_size > 10_000


def test_the_asset_page_plots_the_numbers(
    demo: DemoProcess, browser: Chrome, screenshot: Path
) -> None:
    text = open_page(browser, demo.url(), ASSET)
    for word in ("rows_per_second", "quarantined", "batch_seconds_p95", "table_version"):
        assert word in text
    assert "Join the Dagster community" not in text


def test_the_lineage_shows_topic_table_and_upkeep(
    demo: DemoProcess, browser: Chrome, screenshot: Path
) -> None:
    text = open_page(browser, demo.url(), LINEAGE)
    assert text.count("Kafka") >= 1
    for asset in ("clicks_quarantine", "clicks_compaction", "clicks_vacuum"):
        assert asset in text


def test_the_supervisor_is_running(demo: DemoProcess, browser: Chrome, screenshot: Path) -> None:
    text = open_page(browser, demo.url(), SENSOR)
    assert "clicks_start" in text
    assert "Keeps the driver of clicks running" in text
