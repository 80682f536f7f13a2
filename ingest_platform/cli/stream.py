"""`ingest-platform stream`: run a stream's driver in this process."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.group()
def stream() -> None:
    """Run and steer streams."""


@stream.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", help="Which stream, when the file declares several.")
@click.option("--available-now", is_flag=True, help="Drain what is there, then exit.")
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
@click.option("--debug", is_flag=True, help="Log more, and show stack traces.")
def run(path: Path, name: str | None, available_now: bool, log_json: bool, debug: bool) -> None:
    """Run the stream that PATH (a defs.yaml, or its folder) declares, without Dagster.

    \b
    Examples:
      ingest-platform stream run ingest_platform/defs/clicks/defs.yaml
      ingest-platform stream run ingest_platform/defs/clicks --available-now

    Ends on SIGTERM or Ctrl-C after the current batch, within 30 seconds.
    """  # noqa: D301 - click's mark for a block to keep
    from ingest_platform.drivers.diagnostics import set_up_logging  # noqa: PLC0415
    from ingest_platform.drivers.stream import Options, log_dir, run_stream  # noqa: PLC0415
    from ingest_platform.spec import load_spec  # noqa: PLC0415

    set_up_logging(as_json=log_json, debug=debug)
    spec = load_spec(path, os.environ, name)
    options = Options(available_now=available_now, log_dir=log_dir(spec.name, os.environ))
    run_stream(spec, os.environ, options)
