"""A repair's plan and outcome, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ingest_platform.model.repair import Removal, RepairPlan, Step

_PARTITIONS_SHOWN = 30
_FINDINGS_SHOWN = 20


def show_plan(plan: RepairPlan, console: Console) -> None:
    """Print what is wrong, what will be done, and what speaks against it."""
    record = plan.record
    console.print(Text.assemble((record.stream, "bold"), f": repair {record.repair}"))
    for finding in plan.findings[:_FINDINGS_SHOWN]:
        console.print(Text.assemble("  ", (finding.symptom, "red"), f"  {finding.what}"))
    if len(plan.findings) > _FINDINGS_SHOWN:
        more = len(plan.findings) - _FINDINGS_SHOWN
        console.print(f"  and {more} more: --json lists all of them")
    for number, line in enumerate(_steps(plan), start=1):
        console.print(Text(f"  {number}. {line}"), soft_wrap=True)
    console.print(_offsets(plan))
    for warning in plan.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
    for reason in plan.blocked:
        console.print(Text.assemble(("blocked: ", "bold red"), reason), soft_wrap=True)


def show_steps(plan: RepairPlan, over: list[Step], console: Console) -> None:
    """Print how far an open repair has come."""
    done = ", ".join(over) or "none"
    console.print(
        Text.assemble(
            (f"repair {plan.record.repair} is open", "bold"),
            f"; steps that are over: {done}. Go on with: ingest-platform repair apply "
            f"{plan.record.stream}",
        ),
        soft_wrap=True,
    )


def _steps(plan: RepairPlan) -> Iterator[str]:
    record, table, quarantine = plan.record, plan.table, plan.quarantine
    yield "stop the driver and keep others out (pause and lease)"
    yield f"the last good state is version {record.kept_version}, of {table.version} now"
    how = "delete" if plan.removal is Removal.DELETE else "RESTORE away"
    rows = (
        f"{how} {table.rows:,} rows of {plan.undone} batches, in {table.files} files"
        if plan.undone
        else "remove nothing that a ledger counts"
    )
    yield f"table: {rows}; quarantine: delete {quarantine.rows:,} records"
    yield "write the offsets below into the table's log, as the start of the next session"
    yield f"back up and retire the checkpoint ({plan.session or 'there is none'})"
    yield "start a new session, and audit log, data and topic"


def _offsets(plan: RepairPlan) -> Table:
    table = Table("topic", box=None)
    for column in ("partition", "kept until", "read from", "given up"):
        table.add_column(column, justify="right")
    record = plan.record
    rows = list(record.start)
    for topic, partition, start in rows[:_PARTITIONS_SHOWN]:
        kept = record.kept.get(topic, partition)
        lost = sum(r.width for r in record.accepted if (r.topic, r.partition) == (topic, partition))
        shown = "-" if kept is None else f"{kept:,}"
        table.add_row(topic, str(partition), shown, f"{start:,}", f"{lost:,}" if lost else "")
    if len(rows) > _PARTITIONS_SHOWN:
        table.add_row(f"and {len(rows) - _PARTITIONS_SHOWN} more", *[""] * 4)
    return table
