"""`ingest-platform stream`: run a stream's driver in this process, or steer the one that runs."""

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

    Exit code 0 after a drain or a signal; else that of the error: 2 spec, 3 environment, 4 data.
    """  # noqa: D301 - click's mark for a block to keep
    from ingest_platform.drivers.diagnostics import set_up_logging  # noqa: PLC0415
    from ingest_platform.drivers.monitor import alerts_of  # noqa: PLC0415
    from ingest_platform.drivers.stream import Options, log_dir, run_stream  # noqa: PLC0415
    from ingest_platform.spec import load_spec  # noqa: PLC0415

    set_up_logging(as_json=log_json, debug=debug)
    spec = load_spec(path, os.environ, name)
    options = Options(
        available_now=available_now,
        log_dir=log_dir(spec.name, os.environ),
        alerts=alerts_of(path, os.environ),
    )
    run_stream(spec, os.environ, options)


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_reason = click.option("--reason", default="", help="Why; shown wherever the stream is.")
_within = click.option(
    "--within", type=click.FloatRange(1), default=180.0, help="Seconds to wait until it is healthy."
)


@stream.command()
@click.argument("name")
@_within
@_json
def start(name: str, within: float, as_json: bool) -> None:
    """Start the driver of NAME on this host, detached, and wait until it is healthy.

    Nothing happens if it runs.

    \b
    Examples:
      ingest-platform stream start clicks
      ingest-platform stream start clicks --within 600 --json

    Exit code 0 if it is healthy; 2 if the stream is paused; else the driver's own error: 2 spec,
    3 environment, 4 data.
    """  # noqa: D301 - click's mark for a block to keep
    _steering(name, as_json=as_json).start(within).show(as_json=as_json)


@stream.command()
@click.argument("name")
@_reason
@_json
def drain(name: str, reason: str, as_json: bool) -> None:
    """Let the driver of NAME finish its batch and exit, and wait for that.

    A running supervisor then starts another one; `pause` keeps the stream stopped.

    \b
    Example:
      ingest-platform stream drain clicks --reason "new schema"

    Exit code 0 if no driver is there any more, 3 if it does not end in time.
    """  # noqa: D301 - click's mark for a block to keep
    steering = _steering(name, as_json=as_json)
    patience = steering.spec.supervision.drain_within.total_seconds()
    steering.drain(patience, reason).show(as_json=as_json)


@stream.command()
@click.argument("name")
@_reason
@_within
@_json
def restart(name: str, reason: str, within: float, as_json: bool) -> None:
    """Drain the driver of NAME, and start its successor on this host.

    A driver that does not drain in time is ended: its open batch is repeated, nothing is lost.

    \b
    Example:
      ingest-platform stream restart clicks --reason "decode mended"

    Exit codes as for `start`.
    """  # noqa: D301 - click's mark for a block to keep
    steering = _steering(name, as_json=as_json)
    patience = steering.spec.supervision.drain_within.total_seconds()
    steering.restart(patience, within, reason).show(as_json=as_json)


@stream.command()
@click.argument("name")
@_reason
@_json
def pause(name: str, reason: str, as_json: bool) -> None:
    """Want no driver of NAME until `resume`; the pause survives restarts of everything.

    The driver finishes its batch and exits by itself within half a minute.

    \b
    Example:
      ingest-platform stream pause clicks --reason "broker move, until 18:00"

    Exit code 0, also if it was paused already (whose pause it is, is told).
    """  # noqa: D301 - click's mark for a block to keep
    _steering(name, as_json=as_json).pause(reason).show(as_json=as_json)


@stream.command()
@click.argument("name")
@_json
def resume(name: str, as_json: bool) -> None:
    """Take back the pause of NAME; a running supervisor then starts it.

    \b
    Example:
      ingest-platform stream resume clicks

    Exit code 0, also if it was not paused.
    """  # noqa: D301 - click's mark for a block to keep
    _steering(name, as_json=as_json).resume().show(as_json=as_json)


def _steering(name: str, *, as_json: bool):  # noqa: ANN202  (imported below)
    from ingest_platform.cli.steering import Steering  # noqa: PLC0415

    return Steering(name, quiet=as_json)
