"""Pictures for the documentation: `python -m ingest_platform_tests.browser.screenshots FOLDER`.

Runs a demo of its own, unless `--url` names a running one, and waits until the plots have points.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import click

from ingest_platform_tests.browser.chromium import chromium, missing
from ingest_platform_tests.browser.pages import (
    ASSET,
    CHECKS,
    COMPACTION,
    LINEAGE,
    SENSOR,
    open_page,
)
from ingest_platform_tests.demo_process import DemoProcess

_PAGES = {
    "asset": ASSET,
    "checks": CHECKS,
    "compaction": COMPACTION,
    "lineage": LINEAGE,
    "sensor": SENSOR,
}
_HEIGHTS = {"asset": 1500, "checks": 900, "compaction": 1500, "lineage": 900, "sensor": 1000}
_WIDTH = 1400
_POINTS = 12
_RUNS = 4  # of compaction
_SETTLE_SECONDS = 3.0  # the graph's layout and the plots are animated


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--url", help="Of a running Dagster UI.")
def main(folder: Path, url: str | None) -> None:
    """Write one PNG per page."""
    why = missing()
    if why:
        click.echo(why, err=True)
        sys.exit(3)
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if url is None:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder = scratch / "demo"
            demo = stack.enter_context(DemoProcess.start(folder, compact_every="1 minute"))
            demo.wait_for_materializations(_POINTS, seconds=600)
            demo.wait_for("clicks_compaction", lambda found: len(found) >= _RUNS, 600)
            url = demo.url()
        browser = stack.enter_context(chromium())
        for name, page in _PAGES.items():
            browser.set_window_size(_WIDTH, _HEIGHTS[name])
            open_page(browser, url, page)
            time.sleep(_SETTLE_SECONDS)
            browser.save_screenshot(str(folder / f"{name}.png"))
            click.echo(folder / f"{name}.png")


if __name__ == "__main__":
    main()
