"""`ingest-platform alerts`: try the channels, and list what is open."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from ingest_platform.adapters.alerts.channel import DeliveryFailed
from ingest_platform.adapters.alerts.channels import sender
from ingest_platform.adapters.alerts.outbox import Outbox, Shelf
from ingest_platform.adapters.alerts.outboxes import Outboxes, spare_path
from ingest_platform.adapters.alerts.text import details
from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.specs import alert_settings, read_deployment
from ingest_platform.errors import EnvironmentFault, SpecError, UserError
from ingest_platform.model.alert import Alert, AlertKind, Severity, Transition
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StorageEnvironment
from ingest_platform.spec.alerts import AlertsSpec, ChannelSpec, channel_name

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@dataclass(frozen=True)
class Tried:
    """How a channel took the test; `exit_code` is that of the error's class, 0 for none."""

    channel: str
    type: str
    ok: bool
    seconds: float
    error: str = ""
    exit_code: int = 0


@click.group()
def alerts() -> None:
    """Try the alert channels, list open alerts."""


@alerts.command()
@_json
def test(as_json: bool) -> None:
    """Send a test alert, and its resolution, to every configured channel.

    \b
    Examples:
      ingest-platform alerts test
      ingest-platform alerts test --json | jq '.channels[] | select(.ok | not)'

    Exit code 0 if every channel took it; 2 if none is configured, or a channel's environment
    variable is not set; 3 if a channel did not take it.
    """  # noqa: D301 - click's mark for a block to keep
    spec = alert_settings(os.environ)
    if not spec.channels:
        raise SpecError(
            "no alert channel is configured",
            where=os.environ.get("INGEST_ALERTS") or "the deployment's specs",
            remedy="declare channels in a defs.yaml of type ingest_platform.Alerts (docs/spec.md)",
        )
    with ThreadPoolExecutor(len(spec.channels)) as pool:
        tried = list(pool.map(lambda channel: _try(channel, spec), spec.channels))
    if as_json:
        click.echo(json.dumps({"channels": [asdict(one) for one in tried]}))
    else:
        _show_tried(tried)
    click.get_current_context().exit(max(one.exit_code for one in tried))


@alerts.command("list")
@_json
def list_(as_json: bool) -> None:
    """List open alerts, oldest first, and the channels that have yet to be told.

    \b
    Examples:
      ingest-platform alerts list
      ingest-platform alerts list --json | jq '.alerts[].command'

    Exit code 0, whatever is open; 3 if an outbox cannot be read (the others are shown).
    """  # noqa: D301 - click's mark for a block to keep
    spec = alert_settings(os.environ)
    streams = [item.spec for item in read_deployment(os.environ).found]
    storage = StorageEnvironment.from_env(os.environ)
    boxes = Outboxes.look(streams, storage, spare_path(spec, os.environ))
    found = [
        shown
        for root, shelves in boxes.found.items()
        for key, shelf in shelves.items()
        if (shown := _open(boxes.boxes[root], key, shelf, spec))
    ]
    found.sort(key=lambda shown: shown["at"])
    if as_json:
        click.echo(json.dumps({"alerts": found, "unreadable": dict(boxes.faults)}))
    else:
        _show_open(found, boxes.faults)
    click.get_current_context().exit(EnvironmentFault.exit_code if boxes.faults else 0)


def _try(channel: ChannelSpec, spec: AlertsSpec) -> Tried:
    now, began = utc_now().isoformat(timespec="seconds"), time.monotonic()
    alert = Alert(
        AlertKind.TEST,
        Severity.WARNING,
        "",
        "a test of the alert channels: nothing is wrong",
        now,
        "ingest-platform alerts list",
        subject=now,  # another test is another alert
    )
    error, code = "", 0
    try:
        send, timeout = sender(channel, os.environ), spec.timeout.total_seconds()
        send([Transition(alert, 1, now)], timeout)
        send([Transition(alert, 2, now, "it was a test")], timeout)
    except DeliveryFailed as failed:
        error, code = str(failed), EnvironmentFault.exit_code
    except UserError as wrong:
        error, code = f"{wrong.what}; {wrong.remedy}", wrong.exit_code
    seconds = round(time.monotonic() - began, 2)
    return Tried(channel_name(channel), channel.type, not error, seconds, error, code)


def _open(outbox: Outbox, key: str, shelf: Shelf, spec: AlertsSpec) -> dict[str, Any] | None:
    """What is shown of an open alert; None for one that is resolved."""
    told = outbox.transition(key, shelf.numbers[-1]) if shelf.open else None
    if told is None:
        return None
    waiting: dict[str, str] = {}
    for channel in map(channel_name, spec.channels):
        if told.number in shelf.undelivered(channel):
            tried = shelf.tries.get((told.number, channel), 0)
            last = outbox.attempt(key, told.number, channel, tried)
            waiting[channel] = last.error if last else ""
    return {"key": key, "at": told.at, **asdict(told.alert), "waiting": waiting}


def _show_tried(tried: Sequence[Tried]) -> None:
    console = stdout_console()
    for one in tried:
        mark = "[green]ok    [/]" if one.ok else "[bold red]failed[/]"
        said = f": {escape(one.error)}" if one.error else ""
        console.print(f"  {mark}  {one.channel} ({one.type}), {one.seconds:.2f} s{said}")


def _show_open(found: Sequence[dict[str, Any]], faults: Any) -> None:
    console = stdout_console()
    if not found:
        console.print("no alert is open")
    for shown in found:
        raw = {name: value for name, value in shown.items() if name not in {"key", "at", "waiting"}}
        told = Transition(Alert.from_dict(raw), 1, shown["at"])
        grid = Table.grid(padding=(0, 2))
        for name, text in details(told):
            grid.add_row(f"  [dim]{escape(name)}[/]", escape(text))
        for channel, error in shown["waiting"].items():
            grid.add_row(
                f"  [yellow]{channel} waits[/]", escape(error or "is told by the next tick")
            )
        console.print(f"[bold]{escape(shown['key'])}[/] ({shown['severity']}): ", end="")
        console.print(escape(shown["what"]))
        console.print(grid)
    for root, fault in faults.items():
        console.print(f"[bold red]the outbox at {escape(root)} cannot be read[/]: {escape(fault)}")
