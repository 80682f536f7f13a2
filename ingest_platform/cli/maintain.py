"""`ingest-platform compact` and `vacuum`: maintain tables now, from here."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
from pydantic import TypeAdapter
from rich.table import Table

from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.errors import INTERRUPTED, show_error
from ingest_platform.cli.interrupts import Interrupts
from ingest_platform.cli.specs import find
from ingest_platform.errors import UserError
from ingest_platform.spec import StreamSpec
from ingest_platform.spec.environment import log_root
from ingest_platform.spec.fields import Duration

if TYPE_CHECKING:  # Spark takes seconds to import; a dry run of compaction needs it as well
    from ingest_platform.drivers.maintenance import Run
    from ingest_platform.maintain.table_report import TableReport

_names = click.argument("names", nargs=-1, required=True, metavar="NAME...")
_dry = click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.command()
@_names
@_dry
@_json
def compact(names: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Put small files of the tables of NAME... together, as their specs say.

    The plan comes from the Delta log alone: Spark is started only if there is something to do, and
    never on a dry run. It may run beside the stream; each batch of partitions is a commit of its
    own, so an interrupted run keeps what it has done.

    \b
    Examples:
      ingest-platform compact clicks --dry-run     # which partitions, and why not the others
      ingest-platform compact clicks orders        # one Spark driver for both
      ingest-platform compact clicks --json | jq '.tables[] | {name, files_before, files_after}'

    Exit code 0, also if there is nothing to do; 3 or 4 if a table could not be maintained.
    """  # noqa: D301 - click's mark for a block to keep
    from ingest_platform.drivers.maintenance import Run  # noqa: PLC0415

    _show(Run("compact", _specs(names), dry_run), as_json=as_json)


@click.command()
@_names
@_dry
@click.option("--full", is_flag=True, help="List the storage, whatever the log says.")
@click.option("--keep", help="Keep removed files for so long instead of the table's retention.")
@click.option(
    "--unsafe-retention",
    metavar="REASON",
    help="Allow a --keep that readers or time travel may miss; the reason goes into the history.",
)
@_json
def vacuum(  # noqa: PLR0917  (click passes them by name)
    names: tuple[str, ...],
    dry_run: bool,
    full: bool,
    keep: str | None,
    unsafe_retention: str | None,
    as_json: bool,
) -> None:
    """Delete files of the tables of NAME... that no version within the retention needs.

    The retention is the table's property delta.deletedFileRetentionDuration. What the log says
    decides whether Spark is needed; storage is listed once a day, to find what killed writers left.

    \b
    Examples:
      ingest-platform vacuum clicks --dry-run --full
      ingest-platform vacuum clicks orders
      ingest-platform vacuum clicks --keep 24h --unsafe-retention 'disk full, all readers stopped'

    Exit code 0, also if there is nothing to do; 2 if the retention is unsafe; 3 or 4 if a table
    could not be vacuumed.
    """  # noqa: D301 - click's mark for a block to keep
    from ingest_platform.drivers.maintenance import Run  # noqa: PLC0415
    from ingest_platform.drivers.vacuum_table import VacuumOptions  # noqa: PLC0415

    options = VacuumOptions(dry_run, full or keep is not None, _duration(keep), unsafe_retention)
    _show(Run("vacuum", _specs(names), dry_run, options), as_json=as_json)


def _specs(names: Sequence[str]) -> list[StreamSpec]:
    return [find(name, os.environ).spec for name in dict.fromkeys(names)]


def _duration(text: str | None) -> timedelta | None:
    """Read as specs are read: `24h`, `7 days`."""
    if text is None:
        return None
    try:
        return TypeAdapter(Duration).validate_python(text)
    except ValueError as error:
        raise UserError(
            f"{text!r} is no duration", where="--keep", remedy="write e.g. 24h or 7 days"
        ) from error


def _show(run: Run, *, as_json: bool) -> None:
    from ingest_platform.drivers.maintenance import first_error, maintain  # noqa: PLC0415

    logs = log_root(os.environ) / f"cli_{run.action}"
    # Whatever was committed stays; a second Ctrl-C does not wait for Spark's own end.
    with Interrupts(haste=lambda: os._exit(INTERRUPTED)):
        reports = maintain(run, os.environ, logs)
    if as_json:
        tables = [report.to_dict() for report in reports]
        click.echo(json.dumps({"dry_run": run.dry_run, "tables": tables}))
    else:
        _print(reports)
    failure = first_error(reports)
    if failure:
        click.get_current_context().exit(failure.exit_code)


def _print(reports: Sequence[TableReport]) -> None:
    console = stdout_console()
    for report in reports:
        if report.error:
            show_error(report.error, debug=False)
            continue
        console.print(f"[bold]{report.name}[/]: {report.done}")
        grid = Table.grid(padding=(0, 2))
        for name, value in report.numbers.items():
            grid.add_row("", name.replace("_", " "), _number(value))
        for reason, count in report.skipped.items():
            grid.add_row("", f"left alone: {reason}", str(count))
        console.print(grid)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
