"""`ingest-platform status`: all streams at a glance, without a JVM."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.live import Live

from ingest_platform.adapters.control_store import ControlStore
from ingest_platform.adapters.housekeeping_store import HousekeepingStore
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.adapters.table_checksum import size_by_checksum
from ingest_platform.adapters.table_log import TableLog, TableSize
from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.errors import show_error
from ingest_platform.cli.overview import Overview, Sighting, overview
from ingest_platform.cli.specs import Found, find, read_deployment
from ingest_platform.cli.status_view import details, overview_table
from ingest_platform.errors import IngestError, SpecError
from ingest_platform.maintain.housekeeping import Housekeeping
from ingest_platform.model.status import Status
from ingest_platform.spec import StorageEnvironment, StreamSpec

_PARALLEL = 64  # streams: each waits for the storage nearly all of its time
_HISTORY = 2_000  # commits

_Look = Callable[[], list[Overview]]
_Render = Callable[[list[Overview]], RenderableType]


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--watch", is_flag=True, help="Refresh in place until Ctrl-C.")
@click.option("--every", type=click.FloatRange(0.2), default=2.0, help="Seconds between two looks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (per look).")
def status(names: tuple[str, ...], watch: bool, every: float, as_json: bool) -> None:
    """Show state, lag, rates and table of every stream, or of the named ones.

    One name gives all details. Reads the drivers' status documents and the tables' logs; nothing
    is written, and no JVM is started.

    \b
    Examples:
      ingest-platform status
      ingest-platform status clicks             # everything about one
      ingest-platform status --watch --every 5
      ingest-platform status --json | jq '.streams[] | {name, state, lag_seconds}'

    Exit code 0, whatever the states; 2 if a spec cannot be read (the others are shown).
    """  # noqa: D301 - click's mark for a block to keep
    found, broken = _specs(names)
    watchers = [_Watcher(item.spec) for item in found]
    detailed = len(names) == 1
    look = partial(_look, watchers, detailed=detailed)
    console = stdout_console()
    render = details if detailed else partial(overview_table, width=console.width)
    if as_json:
        _print_json(look, broken, every if watch else None)
    elif watch:
        _watch(look, render, every, console)
    else:
        console.print(render(look()))
    for error in broken:
        show_error(error, debug=False)
    if broken:
        click.get_current_context().exit(SpecError.exit_code)


class _Watcher:
    """Reads all about one stream, again and again."""

    def __init__(self, spec: StreamSpec) -> None:
        self.spec = spec
        self._storage = StorageEnvironment.from_env(os.environ)
        self._table = TableLog(spec.table.path, self._storage)
        self._objects = object_store(spec.root, self._storage)

    def look(self, *, detailed: bool) -> Overview:
        """Read everything now; what cannot be read is named, not raised: the rest still counts."""
        seen: dict[str, Any] = {}
        try:
            status = StatusStore(self._objects).read(self.spec.name)
            seen["status"] = status
            seen["alive"] = LocalLauncher().alive(status.runs_at) if status else None
            seen["control"] = ControlStore(self._objects, self.spec.name).read()
            seen["files"] = self._size(status)
            seen["housekeeping"] = self._housekeeping(detailed=detailed)
        except IngestError as error:
            seen["trouble"] = error.what
        return overview(self.spec, Sighting(**seen), datetime.now(UTC))

    def _size(self, status: Status | None) -> TableSize | None:
        """Of two requests where the driver has told a version, else of the table's whole log."""
        known = status.table_version if status else None
        found = size_by_checksum(self.spec.table.path, self._storage, known)
        return found or self._table.size()

    def _housekeeping(self, *, detailed: bool) -> Housekeeping:
        """As the maintenance runs noted it; for one stream also what the table's history says."""
        noted = HousekeepingStore(self._objects, self.spec.name)
        told = Housekeeping(noted.last("compact"), noted.last("vacuum"))
        if not detailed:
            return told
        commits = self._table.commits(-1, _HISTORY, fresh=False)
        return told.or_later(Housekeeping.told_by(commits))


def _specs(names: tuple[str, ...]) -> tuple[list[Found], list[SpecError]]:
    if names:
        return [find(name, os.environ) for name in names], []
    deployment = read_deployment(os.environ)
    return list(deployment.found), [error for _, error in deployment.broken]


def _look(watchers: Sequence[_Watcher], *, detailed: bool) -> list[Overview]:
    """Look at all streams at once: each look is a few round trips to the storage."""
    if not watchers:
        return []
    with ThreadPoolExecutor(min(_PARALLEL, len(watchers))) as pool:
        looks = pool.map(lambda watcher: watcher.look(detailed=detailed), watchers)
        return sorted(looks, key=lambda item: item.name)


def _print_json(look: _Look, broken: Sequence[SpecError], every: float | None) -> None:
    while True:
        document = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "streams": [item.to_dict() for item in look()],
            "broken": [{"where": error.where, "what": error.what} for error in broken],
        }
        click.echo(json.dumps(document))
        if every is None:
            return
        time.sleep(every)


def _watch(look: _Look, render: _Render, every: float, console: Console) -> None:
    live = Live(render(look()), console=console, auto_refresh=False)
    with suppress(KeyboardInterrupt), live:
        while True:
            time.sleep(every)
            live.update(render(look()), refresh=True)
