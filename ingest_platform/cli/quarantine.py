"""`ingest-platform quarantine`: rejected records, and their way back into the table."""

from __future__ import annotations

import json
import os

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.specs import find
from ingest_platform.maintain.rejected import Group, rejected_groups
from ingest_platform.spec import StorageEnvironment


@click.group()
def quarantine() -> None:
    """Look at rejected records, and replay them through a corrected schema.

    \b
    Examples:
      ingest-platform quarantine list clicks
      ingest-platform quarantine replay clicks      # after mending decode in its defs.yaml
    """  # noqa: D301 - click's mark for a block to keep


@quarantine.command("list")
@click.argument("name")
@click.option("--reason", help="Only this reason: undecodable, not_utf8, tombstone, ...")
@click.option("--samples", default=3, show_default=True, help="Records shown of each group.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_rejected(name: str, reason: str | None, samples: int, as_json: bool) -> None:
    """Show what was rejected and why, grouped, with samples. Nothing is changed.

    Samples show the beginning of the records' values: what is in the topic appears on the screen.

    \b
    Examples:
      ingest-platform quarantine list clicks --reason undecodable --samples 10
      ingest-platform quarantine list clicks --json | jq '.groups[] | {reason, detail, records}'

    Exit code 0, whether anything was rejected or not.
    """  # noqa: D301 - click's mark for a block to keep
    spec = find(name, os.environ).spec
    storage = StorageEnvironment.from_env(os.environ)
    groups = rejected_groups(spec.table.quarantine, storage, samples)
    groups = [group for group in groups if reason in {None, group.reason}]
    if as_json:
        where = {"name": spec.name, "quarantine": spec.table.quarantine}
        records = sum(group.records for group in groups)
        listed = [group.to_dict() for group in groups]
        click.echo(json.dumps({**where, "records": records, "groups": listed}))
    else:
        _show(groups, spec.name, stdout_console())


@quarantine.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay(name: str, as_json: bool) -> None:
    """Decode rejected records with the spec's present schema; what is good becomes rows.

    Each record moves exactly once: the commit that adds the rows is recorded in the table's log,
    and a replay that was cut off is finished by the next one. The stream may run meanwhile. What
    is still rejected stays. Records of a batch that is not over are left for the next time.

    \b
    Examples:
      ingest-platform quarantine replay clicks
      ingest-platform audit clicks --data           # each offset is still there once

    Exit code 0 if it came to its end, whatever is left; 2 while a repair is under way; 3 if the
    environment failed: call it again.
    """  # noqa: D301 - click's mark for a block to keep
    found = find(name, os.environ)
    # Spark takes seconds to import: paid only by those who use it.
    from ingest_platform.drivers.replay import run_replay  # noqa: PLC0415

    done = run_replay(found.spec, os.environ)
    if as_json:
        moved = {"rows": done.rows, "left": done.left, "finished_earlier": done.finished}
        click.echo(json.dumps({"name": found.spec.name, **moved}))
        return
    earlier = " (a replay that had been cut off is finished)" if done.finished else ""
    click.echo(
        f"{found.spec.name}: {done.rows:,} records became rows, {done.left:,} stay in the "
        f"quarantine{earlier}"
    )


def _show(groups: list[Group], name: str, console: Console) -> None:
    if not groups:
        console.print(Text(f"{name}: nothing was rejected"))
        return
    table = Table("reason", "detail", "since", "last", box=None)
    table.add_column("records", justify="right")
    for group in groups:
        table.add_row(group.reason, group.detail, group.first, group.last, f"{group.records:,}")
    console.print(table)
    for group in groups:
        for sample in group.samples:
            place = (f"  {group.reason}  {sample.place}  ", "dim")
            console.print(Text.assemble(place, sample.detail), soft_wrap=True)
            if sample.value:
                console.print(Text(f"    {sample.value}"), soft_wrap=True)
