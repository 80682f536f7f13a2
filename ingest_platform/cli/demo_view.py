"""The demo, for people: what runs where, how it goes, and what was proved."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ingest_platform.cli.audit_view import show_report
from ingest_platform.embedded.dagster_dev import Materialization
from ingest_platform.embedded.demo import Demo, Look
from ingest_platform.embedded.proof import Proof
from ingest_platform.embedded.services import BUCKET, Services
from ingest_platform.model.times import parse_time

_SHOWN = 5


def demo_panel(demo: Demo, seconds: float | None) -> Panel:
    """What runs and where; `seconds` is when the demo ends by itself."""
    settings, topic = demo.settings, demo.spec.source.all_topics[0]
    rows = _rows()
    rows.add_row("Dagster", Text(f"{demo.dagster.url}/assets/{demo.spec.name}", "bold cyan"))
    _add_services(rows, demo.services)
    rows.add_row("producer", f"about {settings.rate:,.0f} records/s into topic {topic}, 0.1 % bad")
    rows.add_row("table", demo.spec.table.path)
    rows.add_row("logs", _short(settings.logs))
    command = f"source {_short(settings.shell_variables)} && .venv/bin/ingest-platform status"
    rows.add_row("terminal", f"{command} --watch")
    end = f"by itself in {seconds:g} s, with an audit; or " if seconds else ""
    rows.add_row("end", f"{end}Ctrl-C: ends everything, keeps the data (make clean-demo forgets)")
    return Panel(rows, title="ingest_platform demo", title_align="left", border_style="green")


def services_panel(services: Services, shell_variables: Path) -> Panel:
    """The same for the services alone."""
    rows = _rows()
    _add_services(rows, services)
    rows.add_row("next", f"in another terminal: source {_short(shell_variables)} && dagster dev")
    rows.add_row("end", "Ctrl-C; the data stays")
    return Panel(rows, title="embedded services", title_align="left", border_style="green")


def status_line(look: Look, now: datetime | None = None) -> str:
    """How it goes, in one line."""
    produced = f"{look.produced:,}" if look.produced else "-"
    parts = [f"produced {produced}", f"ingested {look.ingested:,}"]
    status = look.status
    if status is None:
        return " · ".join([*parts, "waiting for Dagster to launch the driver"])
    last = status.last_batch
    if last is not None:
        finished = parse_time(last.finished_at)
        age = ((now or datetime.now(UTC)) - finished).total_seconds() if finished else 0.0
        size = f"{last.rows + last.quarantined:,} rows in {last.seconds:.1f} s"
        parts.append(f"last batch {size}, {max(0.0, age):.0f} s ago")
    parts.append(f"table version {status.table_version}" if last else f"{status.reason}")
    return " · ".join([*parts, f"driver {status.state}"])


def show_proof(
    proof: Proof, materializations: Sequence[Materialization], demo: Demo, console: Console
) -> None:
    """Print what Dagster reported, the audit, and the sum of it."""
    _show_materializations(materializations, demo.spec.name, console)
    show_report(proof.audit, demo.spec.name, demo.spec.table.path, console)
    held = sum(bounds.end for bounds in proof.held.values())
    totals, data = proof.audit.totals, proof.audit.data or {}
    console.print(
        f"producer: {proof.receipts.count:,} records acknowledged in this run; "
        f"topic: {held:,} in all; table {data.get('table_rows', 0):,} + quarantine "
        f"{data.get('quarantine_rows', 0):,} + tombstones {totals.skipped:,} = "
        f"{sum(data.get(n, 0) for n in ('table_rows', 'quarantine_rows')) + totals.skipped:,}",
        soft_wrap=True,
    )
    for failure in proof.failures:
        console.print(Text.assemble(("  failed  ", "bold red"), failure), soft_wrap=True)
    if not proof.failures:
        console.print("[bold green]nothing lost, nothing doubled[/]")


def _show_materializations(found: Sequence[Materialization], asset: str, console: Console) -> None:
    console.print(f"Dagster reported {len(found)} materializations of {asset}:")
    for made in found[-_SHOWN:]:
        at = datetime.fromtimestamp(made.at, UTC)
        version = made.numbers.get("table_version")
        lag = made.numbers.get("lag_seconds")
        more = (
            f" Table version {version:.0f}, lag {lag:.1f} s."
            if version is not None and lag is not None
            else ""
        )
        console.print(f"  {at:%H:%M:%S} UTC  {made.description}{more}", soft_wrap=True)


def _rows() -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    return rows


def _add_services(rows: Table, services: Services) -> None:
    s3 = services.s3
    rows.add_row("Kafka", services.kafka.bootstrap_servers)
    rows.add_row("S3", f"{s3.endpoint}, bucket {BUCKET}, path-style")
    rows.add_row("", f"key {s3.access_key}, secret {s3.secret_key} (fixed; loopback only)")


def _short(path: Path) -> str:
    """Relative to the working directory where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
