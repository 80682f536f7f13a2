"""`ingest-platform demo`: the whole platform on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.demo_view import demo_panel, show_proof, status_line
from ingest_platform.cli.interrupts import Interrupts
from ingest_platform.cli.live_line import LiveLine
from ingest_platform.cli.specs import read_deployment
from ingest_platform.embedded import leftovers
from ingest_platform.embedded.demo import Demo
from ingest_platform.embedded.demo_run import forget, running_demo
from ingest_platform.embedded.demo_settings import Settings
from ingest_platform.embedded.producer import RATE
from ingest_platform.embedded.services import BUCKET, without_foreign
from ingest_platform.errors import DataProblem, SpecError
from ingest_platform.spec import StreamSpec

FOLDER = ".ingest/demo"

STREAM = "clicks"  # whose records the producer makes

_LOOK_SECONDS = 1.0
_INTERRUPTED = 130


@click.command()
@click.option("--seconds", type=click.FloatRange(min=1), help="End after this time, and audit.")
@click.option("--rate", type=click.FloatRange(min=1), default=RATE, help="Records per second.")
@click.option("--port", type=int, help="Of the UI; default 3000, or a free one.")
@click.option("--kafka-port", type=int, help="Default: a free one.")
@click.option("--s3-port", type=int, help="Default: a free one.")
@click.option("--forget", "forget_data", is_flag=True, help="Remove the data of earlier demos.")
def demo(  # noqa: PLR0917 - click passes them by name
    seconds: float | None,
    rate: float,
    port: int | None,
    kafka_port: int | None,
    s3_port: int | None,
    forget_data: bool,
) -> None:
    """Run Kafka, S3, a producer, Dagster and the clicks stream on this machine.

    Data and logs stay in $INGEST_DEMO_DIR (.ingest/demo); the next demo goes on with them. Ctrl-C
    ends everything in order, a second one at once.

    \b
    Examples:
      ingest-platform demo
      ingest-platform demo --seconds 180     # ends by itself: 0 only if nothing is lost or doubled
      ingest-platform demo --forget

    Exit code with --seconds: 0 if every record that was produced is in table or quarantine exactly
    once and Dagster has reported it, 4 if not. Without: 0.
    """  # noqa: D301 - click's mark for a block to keep
    folder = Path(os.environ.get("INGEST_DEMO_DIR") or FOLDER).expanduser().absolute()
    console = stdout_console()
    if forget_data:
        console.print(f"removed {folder}" if forget(folder) else f"there is no {folder}")
        return
    project = Path(__file__).parents[2]
    settings = Settings(folder, project, _specs(), rate, port, kafka_port, s3_port)
    with Interrupts(haste=lambda: _end_all(folder)) as interrupts:
        code = _run(settings, seconds, interrupts, console)
    click.get_current_context().exit(code)


def _end_all(folder: Path) -> None:
    leftovers.end_all(folder)


def _specs() -> tuple[StreamSpec, ...]:
    """All streams that Dagster will load, the one of the clicks first.

    Raises:
        SpecError: One is not valid, or there is no stream of clicks.
    """
    environ = {**without_foreign(os.environ), "INGEST_LAKE": f"s3a://{BUCKET}"}
    environ.pop("INGEST_DEFS", None)  # Dagster loads the package's own
    deployment = read_deployment(environ)
    for _, error in deployment.broken:
        raise error
    specs = sorted((item.spec for item in deployment.found), key=lambda s: s.name != STREAM)
    if not specs or specs[0].name != STREAM:
        raise SpecError(
            f"the demo needs the stream {STREAM!r}, which its producer writes for",
            where=str(deployment.folder),
            remedy=f"restore it: git checkout -- {deployment.folder / STREAM}",
        )
    return tuple(specs)


def _run(
    settings: Settings, seconds: float | None, interrupts: Interrupts, console: Console
) -> int:
    begun = time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - begun:5.0f} s  {text}[/]")

    with running_demo(settings, os.environ, say=say, console=Console(stderr=True)) as running:
        try:
            say("everything runs")
            console.print(demo_panel(running, seconds))
            _watch(running, seconds, console)
            return _finish(running, say, console)
        except KeyboardInterrupt:
            return 0 if seconds is None else _INTERRUPTED
        finally:
            interrupts.hold()


def _watch(demo: Demo, seconds: float | None, console: Console) -> None:
    """Show how it goes until the time is up."""
    end = float("inf") if seconds is None else time.monotonic() + seconds
    with LiveLine(console) as line:
        while time.monotonic() < end:
            demo.check()
            line.show(status_line(demo.look()))
            time.sleep(min(_LOOK_SECONDS, max(0.0, end - time.monotonic())))


def _finish(demo: Demo, say: Callable[[str], None], console: Console) -> int:
    """Let the stream catch up, and audit."""
    say("stopping the producer and waiting until all is ingested")
    with LiveLine(console) as line:
        materializations = demo.settle(lambda look: line.show(status_line(look)))
    say("ending Dagster and the driver, then auditing")
    proof = demo.prove()
    show_proof(proof, materializations, demo, console)
    if not materializations:
        console.print(
            f"[bold red]Dagster reported no materialization[/]; see {demo.dagster.child.log}",
            soft_wrap=True,
        )
    return 0 if materializations and not proof.failures else DataProblem.exit_code
