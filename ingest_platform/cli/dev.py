"""`ingest-platform dev`: Kafka and S3 on this machine, for `dagster dev` in another terminal."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import click
from rich.console import Console

from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.demo_view import services_panel
from ingest_platform.cli.interrupts import Interrupts
from ingest_platform.cli.specs import read_deployment
from ingest_platform.embedded.dagster_dev import prepare_home
from ingest_platform.embedded.demo_run import make_topics
from ingest_platform.embedded.demo_settings import platform_variables, write_shell_variables
from ingest_platform.embedded.disk import check_space
from ingest_platform.embedded.services import Services, start_services, without_foreign
from ingest_platform.errors import ServiceStartError

FOLDER = ".ingest/dev"

_POLL_SECONDS = 0.5


@click.command()
@click.option("--kafka-port", type=int, help="Default: a free one, kept for the next time.")
@click.option("--s3-port", type=int, help="Default: a free one, kept for the next time.")
def dev(kafka_port: int | None, s3_port: int | None) -> None:
    """Run Kafka and S3, with the topics of this deployment's streams, until Ctrl-C.

    Prints the variables to export, and writes them to a file to source, so that `dagster dev`
    and the drivers use these services. Data stay in $INGEST_DEV_DIR (.ingest/dev).

    \b
    Examples:
      ingest-platform dev
      source .ingest/dev/env.sh && dagster dev       # in another terminal
      ingest-platform dev --kafka-port 9092
    """  # noqa: D301 - click's mark for a block to keep
    folder = Path(os.environ.get("INGEST_DEV_DIR") or FOLDER).expanduser().absolute()
    console = stdout_console()
    check_space(folder)
    with suppress(KeyboardInterrupt), Interrupts(haste=lambda: None) as interrupts:
        services = start_services(
            folder,
            env=without_foreign(os.environ),
            kafka_port=kafka_port,
            s3_port=s3_port,
            console=Console(stderr=True),
        )
        try:
            _announce(folder, services, console)
            _watch(services)
        finally:
            interrupts.hold()
            services.stop()


def _announce(folder: Path, services: Services, console: Console) -> None:
    variables = platform_variables(services, folder)
    deployment = read_deployment({**os.environ, **variables})
    make_topics(services, [item.spec for item in deployment.found])
    prepare_home(folder / "dagster", Path(__file__).parents[2])
    write_shell_variables(folder / "env.sh", variables)
    console.print(services_panel(services, folder / "env.sh"))
    for name, value in variables.items():
        click.echo(f"export {name}='{value}'")


def _watch(services: Services) -> None:
    """Until Ctrl-C, or until one of them ends.

    Raises:
        ServiceStartError: One has ended.
    """
    while True:
        for child in (services.kafka.child, services.s3.child):
            if not child.is_running():
                raise ServiceStartError(
                    f"the {child.name} ended; the end of its log:\n{child.log_tail()}",
                    where=str(child.log),
                    remedy="start again: the data is kept",
                )
        time.sleep(_POLL_SECONDS)
