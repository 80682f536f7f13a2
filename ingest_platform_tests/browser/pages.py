"""Pages of Dagster's UI: where they are, and when they are whole."""

from __future__ import annotations

from dataclasses import dataclass

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

_SECONDS = 60
_SCROLL_UP = "document.querySelectorAll('div').forEach(part => { part.scrollTop = 0; })"


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes:
        path: Below the UI's address.
        shows: Texts that are on it when it is whole.
        clicks: Texts to click then, in this order.
        then: Texts that are on it afterwards.
        canvases: Plots on it afterwards, at least.
    """

    path: str
    shows: tuple[str, ...]
    clicks: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    canvases: int = 0


ASSET = Page(
    "/assets/clicks?view=overview",
    ("Latest materialization", "Freshness policy", "Plots", "_kafka_offset"),
    # The columns are folded up, so that the plots stand below the status.
    clicks=("Plots", "Columns"),
    then=("rows_per_second", "lag_records", "batch_seconds_p95"),
    canvases=10,
)
COMPACTION = Page(
    "/assets/clicks_compaction?view=overview",
    ("Latest materialization", "Plots"),
    clicks=("Plots",),
    then=("files_removed", "bytes_rewritten", "seconds"),
    canvases=8,
)
CHECKS = Page("/assets/clicks?view=checks", ("driver_alive", "lag", "ledger_balance"))
LINEAGE = Page(
    "/locations/ingest_platform/asset-groups/ingest/lineage",
    ("clicks", "clicks_quarantine", "Materialized"),
)
SENSOR = Page(
    "/locations/ingest_platform/sensors/clicks_supervisor", ("clicks_supervisor", "Latest tick")
)


def open_page(browser: Chrome, url: str, page: Page) -> str:
    """Open a page, wait until it is whole, and return its text.

    Raises:
        selenium.common.TimeoutException: It does not become whole in a minute.
    """
    browser.get(url + page.path)
    _wait(browser, page.shows, 0)
    for text in page.clicks:
        browser.find_element(By.XPATH, f"//*[normalize-space(text())={text!r}]").click()
    _wait(browser, page.then, page.canvases)
    browser.execute_script(_SCROLL_UP)  # clicking scrolls to what is clicked
    return browser.find_element(By.TAG_NAME, "body").text


def _wait(browser: Chrome, words: tuple[str, ...], canvases: int) -> None:
    def missing() -> list[str]:
        text = browser.find_element(By.TAG_NAME, "body").text
        return [word for word in words if word not in text]

    def whole(_: Chrome) -> bool:
        plots = browser.find_elements(By.TAG_NAME, "canvas")
        return not missing() and len(plots) >= canvases

    WebDriverWait(browser, _SECONDS).until(whole, f"{browser.current_url}: of {words}")
