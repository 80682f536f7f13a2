"""An audit's report, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ingest_platform.maintain.audit.report import AuditReport, Finding, Level, ProvenRange

_RANGES_SHOWN = 30
_FINDINGS_SHOWN = 40


def show_report(report: AuditReport, name: str, table: str, console: Console) -> None:
    """Print verdict, findings, what is proven, and what could not be."""
    console.print(_verdict(report, name, table), soft_wrap=True)
    for line in _findings(report.findings):
        console.print(line, soft_wrap=True)
    if report.proven:
        console.print(_proven(report.proven))
    for line in (*_sums(report), *(f"not proved: {sentence}" for sentence in report.unproved)):
        console.print(Text(line), soft_wrap=True)


def _verdict(report: AuditReport, name: str, table: str) -> Text:
    errors = len(report.errors)
    word = ("complete", "bold green") if report.clean else (f"{errors} errors", "bold red")
    versions = (
        f"versions {report.first_version} to {report.last_version}"
        if report.last_version is not None
        else "no versions"
    )
    return Text.assemble((name, "bold"), ": ", word, f", {versions} of {table}")


def _findings(findings: tuple[Finding, ...]) -> Iterator[Text]:
    for finding in findings[:_FINDINGS_SHOWN]:
        bad = finding.level is Level.ERROR
        yield Text.assemble("  ", (finding.kind, "red" if bad else "yellow"), f"  {finding.what}")
    if len(findings) > _FINDINGS_SHOWN:
        yield Text(f"  and {len(findings) - _FINDINGS_SHOWN} more: --json lists all of them")


def _proven(ranges: tuple[ProvenRange, ...]) -> Table:
    table = Table("topic", title="proven exactly once", title_justify="left", box=None)
    for column in ("partition", "from", "until", "offsets", "versions"):
        table.add_column(column, justify="right")
    for item in ranges[:_RANGES_SHOWN]:
        table.add_row(
            item.topic,
            str(item.partition),
            f"{item.start:,}",
            f"{item.until:,}",
            f"{item.until - item.start:,}",
            f"{item.first_version}-{item.last_version}",
        )
    if len(ranges) > _RANGES_SHOWN:
        table.add_row(f"and {len(ranges) - _RANGES_SHOWN} more ranges", *[""] * 5)
    return table


def _sums(report: AuditReport) -> Iterator[str]:
    t = report.totals
    gaps = f", {t.gaps:,} offsets without a record" if t.gaps else ""
    yield (
        f"{t.read:,} records read = {t.written:,} written + {t.quarantined:,} quarantined "
        f"+ {t.skipped:,} skipped{gaps}"
    )
    undone = f", {t.undone:,} undone" if t.undone else ""
    yield (
        f"{t.commits:,} commits: {t.batches:,} batches in {len(report.sessions)} sessions{undone}, "
        f"{t.others:,} others"
    )
    if t.max_event_time:
        yield f"newest event: {t.max_event_time}"
    if report.data is not None:
        d = report.data
        yield (
            f"data: {d['table_rows']:,} rows in the table + {d['quarantine_rows']:,} in the "
            f"quarantine, {d['expected_rows']:,} expected"
        )
    if report.lag is not None:
        unread = sum(report.lag.values())
        parts = sum(1 for lag in report.lag.values() if lag)
        yield f"topic: {unread:,} offsets unread in {parts} of {len(report.lag)} partitions"
