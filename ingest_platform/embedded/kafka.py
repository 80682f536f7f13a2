"""A real Kafka broker (KRaft, one node) on loopback."""

from __future__ import annotations

import os
import random
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from rich.console import Console

from ingest_platform.embedded.folder import claim
from ingest_platform.embedded.ports import LOOPBACK, answers, choose_ports
from ingest_platform.embedded.process import (
    ChildProcess,
    NotYetHealthyError,
    spawn,
    wait_until_healthy,
)
from ingest_platform.errors import ServiceStartError
from ingest_platform.spark.jar_lock import load_lock
from ingest_platform.spark.jars import JarCache, ensure
from ingest_platform.spark.java import Java, find_java

START_SECONDS = 60.0
STOP_SECONDS = 15.0
RETENTION_HOURS = 72
MAX_MESSAGE_BYTES = 16 << 20

_LOGGING = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
# The process takes about 470 MB.
_JVM_OPTIONS = ("-Xmx512m", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true", _LOGGING)


@dataclass(frozen=True)
class KafkaServer:
    """A running broker.

    Attributes:
        bootstrap_servers: What clients connect to.
        child: The process; tests signal it.
        login_servers: What clients connect to that log in; None without a `login`.
    """

    bootstrap_servers: str
    child: ChildProcess
    _claim: IO[str]
    login_servers: str | None = None

    def stop(self) -> None:
        """End it within 15 s. Idempotent; the data stays."""
        self.child.stop(STOP_SECONDS)
        self._claim.close()

    def __enter__(self) -> Self:
        """The running broker; leaving the block stops it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()


def start_kafka(
    folder: Path,
    *,
    env: Mapping[str, str],
    port: int | None = None,
    login: tuple[str, str] | None = None,
    console: Console | None = None,
) -> KafkaServer:
    """Start a broker on the data below `folder`, made if it is not there.

    Takes about 6 s, 3 s more the first time. Topics are not made by mere use of a name.

    Args:
        folder: Holds topics, configuration, log and the choice of ports.
        env: Where to look for Java and the jar cache.
        port: Port for clients; a free one, kept for the next start, if not given.
        login: User and password of a second port, where clients log in (SASL_PLAINTEXT, PLAIN).
        console: Shows progress while jars are downloaded.

    Raises:
        PortTakenError: `port` is in use.
        ServiceStartError: It did not become healthy, or another process uses `folder`.
        JavaNotFoundError: There is no Java.
        JarLockError: The broker's jars cannot be had.
    """
    java = find_java(env, for_spark=False)
    jars = ensure("kafka", cache=JarCache.from_env(env), lock=load_lock(), console=console)
    claimed = claim(folder, service="Kafka broker", owner_pid=os.getpid())
    try:
        ports = choose_ports(
            folder / "ports.json",
            {"broker": port, "controller": None, **({"login": None} if login else {})},
            rng=random.Random(),  # noqa: S311
        )
        config = _write_config(folder, ports["broker"], ports["controller"])
        if login:
            _add_login(config, ports, *login)
        _format_once(java, jars, folder, config)
        child = _spawn_broker(java, jars, folder, config)
        address = f"{LOOPBACK}:{ports['broker']}"
        wait_until_healthy(
            child, lambda: _check(ports["broker"]), where=address, deadline=START_SECONDS
        )
    except BaseException:
        claimed.close()
        raise
    login_servers = f"{LOOPBACK}:{ports['login']}" if login else None
    return KafkaServer(address, child, claimed, login_servers)


def _spawn_broker(java: Java, jars: Sequence[Path], folder: Path, config: Path) -> ChildProcess:
    command = [*_java_command(java, jars, _JVM_OPTIONS), "kafka.Kafka", str(config)]
    return spawn(command, name="Kafka broker", log=folder / "kafka.log")


def _write_config(folder: Path, port: int, controller_port: int) -> Path:
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        # Static voters: the controller's port stands here only and not in the metadata log, so it
        # may be another one at the next start.
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": folder.absolute() / "data",
        # A mistyped topic must be an error, as on a real cluster.
        "auto.create.topics.enable": "false",
        "log.retention.hours": RETENTION_HOURS,
        "message.max.bytes": MAX_MESSAGE_BYTES,
        "replica.fetch.max.bytes": MAX_MESSAGE_BYTES,
        "group.initial.rebalance.delay.ms": 0,
        # One node cannot hold the usual three copies, and fifty partitions would only slow starts.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
    }
    path = folder / "server.properties"
    path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
    return path


def _add_login(config: Path, ports: Mapping[str, int], user: str, password: str) -> None:
    """A second listener; a later line of the file replaces an earlier one."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    broker, control = (f"{LOOPBACK}:{ports[name]}" for name in ("broker", "controller"))
    clients = f"PLAINTEXT://{broker},LOGIN://{LOOPBACK}:{ports['login']}"
    settings = {
        "listeners": f"{clients},CONTROLLER://{control}",
        "advertised.listeners": clients,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "LOGIN:SASL_PLAINTEXT",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": (
            f'{module} required user_{user}="{password}";'
        ),
    }
    with config.open("a", encoding="utf-8") as file:
        file.writelines(f"{key}={value}\n" for key, value in settings.items())


def _format_once(java: Java, jars: Sequence[Path], folder: Path, config: Path) -> None:
    """Give the storage its cluster id; a second format would make the broker refuse its data."""
    if (folder / "data" / "meta.properties").exists():
        return
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    options = ["-Xmx128m", "-XX:TieredStopAtLevel=1", _LOGGING]
    command = [*_java_command(java, jars, options), "kafka.tools.StorageTool", "format"]
    # "--cluster-id=" because an id may begin with a dash.
    command += [f"--cluster-id={cluster_id}", "-c", str(config), "--ignore-formatted"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise ServiceStartError(
            f"the Kafka storage could not be formatted: {(done.stderr or done.stdout).strip()}",
            where=str(folder),
            remedy="check that the folder is writable and has space, or remove it and start again",
        )


def _java_command(java: Java, jars: Sequence[Path], options: Sequence[str]) -> list[str]:
    return [str(java.executable), *options, "-cp", ":".join(str(jar) for jar in jars)]


def _check(port: int) -> None:
    # The client complains on stderr about every refused connection, so knock first.
    if not answers(port):
        raise NotYetHealthyError("connection refused")
    client = AdminClient({"bootstrap.servers": f"{LOOPBACK}:{port}", "log_level": 0})
    try:
        brokers = client.list_topics(timeout=2).brokers
    except KafkaException as e:
        raise NotYetHealthyError(str(e)) from e
    if not brokers:
        raise NotYetHealthyError("no broker is registered yet")
