"""The whole platform on this machine: Kafka, S3, a producer, Dagster, and the drivers it launches.

What holds about its end: Ctrl-C, SIGTERM and SIGHUP end everything in order, and so does the end of
any of the servers. If the demo itself is killed, broker and S3 server die with it (the kernel sees
to that), and the watchdog ends the rest within a second. If the watchdog is killed too, the next
start, or `make clean-demo`, ends what is left.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from ingest_platform.embedded import dagster_dev, leftovers
from ingest_platform.embedded.demo import DAGSTER_SECONDS, PRODUCER_SECONDS, Demo
from ingest_platform.embedded.demo_settings import (
    Settings,
    demo_environment,
    pace,
    platform_variables,
    write_shell_variables,
)
from ingest_platform.embedded.disk import check_space
from ingest_platform.embedded.drivers import drain_all
from ingest_platform.embedded.folder import claim
from ingest_platform.embedded.ports import choose_ports, is_free
from ingest_platform.embedded.process import ChildProcess, spawn
from ingest_platform.embedded.services import Services, start_services, without_foreign
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform.embedded.watchdog import Watchdog
from ingest_platform.spec import StreamSpec

PARTITIONS = 25
# Bounds what a demo that was left running overnight takes: 3 GB, some hours of clicks.
TOPIC_CONFIG = {"retention.bytes": str(128 << 20), "segment.bytes": str(32 << 20)}

Say = Callable[[str], None]


@contextmanager
def running_demo(
    settings: Settings, environ: Mapping[str, str], *, say: Say, console: Console | None = None
) -> Iterator[Demo]:
    """Start a demo; leaving the block ends it in order, and everything that it started.

    Args:
        settings: What it is to be.
        environ: Java, jar cache and PATH are taken from it; logins and endpoints are not.
        say: Told what happens, a few words at a time.
        console: Shows progress while jars are downloaded.

    Raises:
        ServiceStartError: A part did not start, or another demo uses the folder.
        IngestError: Java, jars, a port or space is missing.
    """
    folder = settings.folder
    with ExitStack() as stack:
        stack.callback(claim(folder, service="demo", owner_pid=os.getpid()).close)
        check_space(folder)
        if leftovers.end_all(folder):
            say("ended what an earlier demo had left behind")
        stack.enter_context(Watchdog(folder))
        ui_port = _ui_port(settings)
        say("starting Kafka and S3")
        services = _start_services(settings, environ, console)
        stack.callback(services.stop)
        make_topics(services, settings.specs)
        env = demo_environment(environ, services, settings)
        say("starting Dagster")
        stack.callback(_drain, folder, say)
        started = time.time()
        dagster = dagster_dev.start_dagster(
            settings.dagster_home, project=settings.project, env=env, port=ui_port
        )
        stack.callback(dagster.stop, DAGSTER_SECONDS)
        # Last, so that the first batch need not take a minute's backlog with a cold JVM.
        producer = _start_producer(settings, env)
        stack.callback(producer.stop, PRODUCER_SECONDS)
        stack.callback(say, "ending the producer and Dagster")
        yield Demo(settings, env, services, dagster, producer, started)


def forget(folder: Path) -> bool:
    """Remove a demo's data; False when there was none.

    Raises:
        ServiceStartError: The demo is running.
    """
    if not folder.exists():
        return False
    with claim(folder, service="demo", owner_pid=os.getpid()):
        leftovers.end_all(folder)
        shutil.rmtree(folder)
    return True


def make_topics(services: Services, specs: Sequence[StreamSpec]) -> None:
    """Make the topics that the deployment's streams read, where they are missing.

    Raises:
        KafkaUnreachableError: The broker does not answer.
    """
    for topic in sorted({topic for spec in specs for topic in spec.source.all_topics}):
        ensure_topic(
            services.kafka.bootstrap_servers, topic, partitions=PARTITIONS, config=TOPIC_CONFIG
        )


def _start_services(
    settings: Settings, environ: Mapping[str, str], console: Console | None
) -> Services:
    services = start_services(
        settings.folder,
        env=without_foreign(environ),
        kafka_port=settings.kafka_port,
        s3_port=settings.s3_port,
        console=console,
    )
    variables = platform_variables(services, settings.folder)
    write_shell_variables(settings.shell_variables, variables | pace(environ))
    return services


def _start_producer(settings: Settings, env: Mapping[str, str]) -> ChildProcess:
    settings.receipts.unlink(missing_ok=True)  # an earlier run's must not pass for this one's
    module = ["-m", "ingest_platform.embedded.producer"]
    options = ["--topic", settings.specs[0].source.all_topics[0], "--rate", f"{settings.rate:g}"]
    return spawn(
        [sys.executable, *module, *options, "--receipts", str(settings.receipts)],
        name="producer",
        log=settings.logs / "producer.log",
        env=env,
    )


def _ui_port(settings: Settings) -> int:
    """The port asked for, else Dagster's usual one if it is free, else the last or any free one."""
    wanted = settings.ui_port
    if wanted is None and is_free(dagster_dev.PORT):
        wanted = dagster_dev.PORT
    rng = random.Random()  # noqa: S311 - not for secrets
    return choose_ports(settings.folder / "ports.json", {"Dagster": wanted}, rng=rng)["Dagster"]


def _drain(folder: Path, say: Say) -> None:
    say("draining the driver")
    killed = drain_all(folder)
    if killed:
        say(f"{killed} drivers did not end in time and were killed; nothing is lost by that")
