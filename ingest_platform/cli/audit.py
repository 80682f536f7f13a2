"""`ingest-platform audit`: is every offset there exactly once?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ingest_platform.cli.audit_view import show_report
from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.specs import find
from ingest_platform.errors import DataProblem, UserError
from ingest_platform.maintain.audit.run import AuditTarget, OnProgress, examine
from ingest_platform.maintain.topic_bounds import topic_bounds
from ingest_platform.spec import SourceSpec, StorageEnvironment


@dataclass(frozen=True)
class _Audited:
    """What the argument means; `source` is not known of a bare table."""

    name: str
    target: AuditTarget
    source: SourceSpec | None


@click.command()
@click.argument("target", metavar="NAME|PATH")
@click.option("--name", help="Which stream, where the file at PATH declares several.")
@click.option("--data", is_flag=True, help="Also compare with the rows of table and quarantine.")
@click.option("--topic", is_flag=True, help="Also compare with the offsets that Kafka holds.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def audit(target: str, name: str | None, data: bool, topic: bool, as_json: bool) -> None:
    """Prove that every offset is in the table exactly once.

    NAME is a stream; PATH is a defs.yaml, or a Delta table itself. Reads only the Delta log's
    commit metadata: a long history takes seconds. Nothing is written.

    \b
    --data   reads the coordinate columns of table and quarantine, and compares
             every single offset with the log's account
    --topic  asks the brokers: what is still unread is lag, what they deleted
             before it was read is lost

    \b
    Examples:
      ingest-platform audit clicks
      ingest-platform audit clicks --data --topic
      ingest-platform audit s3a://lake/tables/clicks --json | jq .findings

    Exit code 0 if the proof holds, 4 if there are errors; notes do not count. docs/operations.md
    explains each kind of finding.
    """  # noqa: D301 - click's mark for a block to keep
    found = _resolve(target, name)
    if topic and found.source is None:
        raise UserError(
            "--topic needs a stream's spec, to know the topic",
            where=target,
            remedy="give the stream's name or its defs.yaml instead of the table's path",
        )
    source = found.source if topic else None
    with _progress(shown=not as_json) as on_progress:
        report = examine(
            found.target,
            StorageEnvironment.from_env(os.environ),
            datetime.now(UTC),
            data=data,
            brokers=(lambda: topic_bounds(source, os.environ)) if source else None,
            on_progress=on_progress,
        ).report
    if as_json:
        where = {"name": found.name, "table": found.target.table}
        click.echo(json.dumps({**where, **report.to_dict()}))
    else:
        show_report(report, found.name, found.target.table, stdout_console())
    if not report.clean:
        click.get_current_context().exit(DataProblem.exit_code)


def _resolve(text: str, name: str | None) -> _Audited:
    if _is_table(text):
        path = text.rstrip("/")
        return _Audited(path.rpartition("/")[2], AuditTarget(path, f"{path}_quarantine"), None)
    spec = find(text, os.environ, name).spec
    source = spec.source
    earliest = source.starting_offsets == "earliest" and source.starting_timestamp is None
    target = AuditTarget(spec.table.path, spec.table.quarantine, from_earliest=earliest)
    return _Audited(spec.name, target, source)


def _is_table(text: str) -> bool:
    return "://" in text or (Path(text) / "_delta_log").is_dir()


@contextmanager
def _progress(*, shown: bool) -> Iterator[OnProgress]:
    columns = (TextColumn("reading the log"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not (shown and console.is_terminal),
    ) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
