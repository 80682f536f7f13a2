"""The command line: `ingest-platform`, or `python -m ingest_platform.cli`."""

from __future__ import annotations

from importlib import metadata

import click

from ingest_platform.cli.errors import ErrorHandlingGroup
from ingest_platform.cli.lazy import LazyCommand

COMMANDS = {
    "check": LazyCommand(
        "ingest_platform.cli.check:check", "Find what would go wrong, before it does."
    ),
    "stream": LazyCommand(
        "ingest_platform.cli.stream:stream", "Run, start, drain, restart, pause a stream."
    ),
    "status": LazyCommand("ingest_platform.cli.status:status", "Show how the streams are doing."),
    "audit": LazyCommand(
        "ingest_platform.cli.audit:audit", "Prove that nothing is lost and nothing is doubled."
    ),
    "repair": LazyCommand(
        "ingest_platform.cli.repair:repair", "Mend a stream: plan first, then apply."
    ),
    "compact": LazyCommand(
        "ingest_platform.cli.maintain:compact", "Put small files of tables together."
    ),
    "vacuum": LazyCommand(
        "ingest_platform.cli.maintain:vacuum", "Delete files that no table version needs."
    ),
    "quarantine": LazyCommand(
        "ingest_platform.cli.quarantine:quarantine", "Show rejected records, and replay them."
    ),
    "alerts": LazyCommand(
        "ingest_platform.cli.alerts:alerts", "Try the alert channels, list what is open."
    ),
    "demo": LazyCommand("ingest_platform.cli.demo:demo", "Run the whole platform on this machine."),
    "dev": LazyCommand("ingest_platform.cli.dev:dev", "Run local Kafka and S3."),
    "setup": LazyCommand("ingest_platform.cli.setup:setup", "Find or install Java, fetch jars."),
    "jars": LazyCommand("ingest_platform.cli.jars:jars", "Verify or download the locked jars."),
}

EXIT_CODES = """\b
Exit codes:
  0  all is well
  1  unexpected error, a bug: --debug shows the trace
  2  a mistake in the command line, a spec or a path
  3  the environment: Kafka, storage, Java, jars
  4  the data: something is lost, doubled, or would be"""


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"ingest-platform {metadata.version('ingest-platform')}")
        ctx.exit()


@click.group(
    cls=ErrorHandlingGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
@click.option("--debug", is_flag=True, help="Show the trace of an error.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version.",
)
def cli(debug: bool) -> None:
    """Kafka topics into Delta tables: exactly once, and provably so.

    NAME is a stream of this deployment (a folder in ingest_platform/defs, or in $INGEST_DEFS);
    the path of a defs.yaml works everywhere instead.

    \b
    Examples:
      ingest-platform check                     # before anything runs
      ingest-platform status --watch            # all streams, live
      ingest-platform audit clicks --data       # prove it
    """  # noqa: D301 - click's mark for a block to keep
    del debug  # read from the context by the error handler


def main() -> None:
    """Entry point of the console script."""
    cli(prog_name="ingest-platform")
