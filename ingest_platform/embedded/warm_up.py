"""Make the class archive for this machine's Java: one real, tiny run of the driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from ingest_platform.embedded.kafka import start_kafka
from ingest_platform.embedded.s3 import start_s3
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform.errors import ServiceStartError
from ingest_platform.spark.class_archive import RECORD_VARIABLE, archive_file
from ingest_platform.spark.classpath import classpath
from ingest_platform.spark.installed import spark_jars_dir
from ingest_platform.spark.jars import JarCache
from ingest_platform.spark.java import find_java

_SPEC = """\
type: ingest_platform.KafkaDeltaTable
attributes:
  name: warm_up
  source: {topic: warm_up, max_offsets_per_trigger: 2000}
  decode: {schema: "id BIGINT, at TIMESTAMP, name STRING, price DOUBLE"}
  table: {path: "s3a://warm/up", event_time: at, partition_by: [hours(at)]}
"""
_RECORDS = 20_000
_TIMEOUT_SECONDS = 300
_KEPT = 3


def warm_up(environ: Mapping[str, str], console: Console | None = None) -> Path:
    """Run the driver on embedded services and keep the classes that it loaded.

    Takes about 40 s on two cores; returns at once when the archive is there.

    Raises:
        ServiceStartError: The run failed.
        JarLockError, JavaNotFoundError: The machine is not set up.
    """
    java = find_java(environ)
    jars = classpath(environ, java=java, console=console)
    cache = JarCache.from_env(environ)
    archive = archive_file(cache.folder, java, jars, spark_jars_dir(environ))
    if archive.is_file():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".record-") as scratch:
        recorded = Path(scratch) / "classes.jsa"
        _run(Path(scratch), {**environ, RECORD_VARIABLE: str(recorded)}, console)
        if recorded.is_file():  # a JVM that cannot record (a -Xshare:off build) is no fault
            recorded.replace(archive)
    _forget_old(archive.parent)
    return archive


def _forget_old(folder: Path) -> None:
    """A new Java, Spark or jar makes a new archive of 240 MB; several checkouts may share them."""
    newest_first = sorted(folder.glob("*.jsa"), key=lambda f: f.stat().st_mtime, reverse=True)
    for archive in newest_first[_KEPT:]:
        archive.unlink(missing_ok=True)  # a JVM that has it mapped keeps it


def _run(folder: Path, environ: Mapping[str, str], console: Console | None) -> None:
    spec = folder / "defs.yaml"
    spec.write_text(_SPEC, encoding="utf-8")
    with (
        start_kafka(folder / "kafka", env=environ, console=console) as kafka,
        start_s3(folder / "s3", env=environ, bucket="warm", console=console) as s3,
    ):
        ensure_topic(kafka.bootstrap_servers, "warm_up", partitions=4)
        _produce(kafka.bootstrap_servers)
        settings = {
            **environ,
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            **s3.environment(),
            "INGEST_LOG_DIR": str(folder / "logs"),
        }
        command = [sys.executable, "-m", "ingest_platform.drivers.stream", str(spec)]
        try:
            subprocess.run(
                [*command, "--available-now"],
                env=settings,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired as error:
            raise _failed(f"took longer than {_TIMEOUT_SECONDS} s") from error
        except subprocess.CalledProcessError as error:
            raise _failed(f"ended with {error.returncode}: {error.stderr[-800:]}") from error


def _failed(how: str) -> ServiceStartError:
    return ServiceStartError(
        f"the run that records classes {how}",
        where="ingest-platform jars warm",
        remedy="mend what it says; drivers start without the archive too, some seconds slower",
    )


def _produce(bootstrap_servers: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(_RECORDS):
        record = {"id": number, "at": "2026-01-01T00:00:00Z", "name": "warm", "price": 1.5}
        text = json.dumps(record)
        # A few bad ones, so that the quarantine's classes are recorded too.
        producer.produce("warm_up", text[:9] if number % 1000 == 0 else text, partition=number % 4)
        producer.poll(0)
    producer.flush()


if __name__ == "__main__":
    warm_up(os.environ, Console(stderr=True))
