"""Pages of Dagster's UI: where they are, and when they are whole."""

from __future__ import annotations

from dataclasses import dataclass

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

_SECONDS = 60


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes:
        path: Below the UI's address.
        shows: Texts that are on it when it is whole.
        canvases: Plots on it, at least.
    """

    path: str
    shows: tuple[str, ...]
    canvases: int = 0


ASSET = Page("/assets/clicks?view=plots", ("rows", "lag_records"), canvases=4)
OVERVIEW = Page("/assets/clicks?view=overview", ("clicks", "Freshness"))
LINEAGE = Page("/assets/clicks?view=lineage&lineageScope=neighbors", ("clicks",))
SENSOR = Page("/locations/ingest_platform/sensors/clicks_supervisor", ("clicks_supervisor",))


def open_page(browser: Chrome, url: str, page: Page) -> str:
    """Open a page, wait until it is whole, and return its text.

    Raises:
        selenium.common.TimeoutException: It does not become whole in a minute.
    """
    browser.get(url + page.path)

    def whole(driver: Chrome) -> bool:
        text = driver.find_element(By.TAG_NAME, "body").text
        plots = driver.find_elements(By.TAG_NAME, "canvas")
        return all(word in text for word in page.shows) and len(plots) >= page.canvases

    WebDriverWait(browser, _SECONDS).until(whole, f"{page} at {url}")
    return browser.find_element(By.TAG_NAME, "body").text
