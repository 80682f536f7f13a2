"""A headless Chromium that talks to nobody but the pages it is sent to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def missing() -> str | None:
    """Why there is no browser here; None if there is one."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if not absent:
        return None
    return f"{' and '.join(absent)} not found: apt-get install -y chromium chromium-driver"


@contextmanager
def chromium(width: int = 1500, height: int = 1000) -> Iterator[Chrome]:
    """A browser with a fresh profile; the window's size is in CSS pixels."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        # The driver of the same package: Selenium would otherwise look for one on the internet.
        browser = Chrome(options, Service(shutil.which("chromedriver") or ""))
        try:
            browser.set_page_load_timeout(60)
            yield browser
        finally:
            browser.quit()
