"""Kafka and S3 together: what `dev` and the demo run on."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ingest_platform.embedded.kafka import KafkaServer, start_kafka
from ingest_platform.embedded.ports import LOOPBACK
from ingest_platform.embedded.s3 import S3Server, start_s3
from ingest_platform.spark.classpath import classpath
from ingest_platform.spark.jar_lock import load_lock
from ingest_platform.spark.jars import JarCache, ensure

BUCKET = "lake"

# A login or an endpoint of the user's own must not reach what runs on loopback only.
_FOREIGN = ("KAFKA_", "AWS_", "DAGSTER_", "INGEST_LAKE", "INGEST_LOG_DIR")
_NO_PROXY = ("NO_PROXY", "no_proxy")


@dataclass(frozen=True)
class Services:
    """A running broker and a running S3 server with the bucket `lake`."""

    kafka: KafkaServer
    s3: S3Server

    def environment(self) -> dict[str, str]:
        """The variables that point the platform at these services; the credentials are fixed."""
        return {
            "KAFKA_BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers,
            **self.s3.environment(),
            "INGEST_LAKE": f"s3a://{BUCKET}",
        }

    def stop(self) -> None:
        """End S3, then Kafka, within 20 s. Idempotent; the data stays."""
        self.s3.stop()
        self.kafka.stop()


def start_services(
    folder: Path,
    *,
    env: Mapping[str, str],
    kafka_port: int | None = None,
    s3_port: int | None = None,
    console: Console | None = None,
) -> Services:
    """Start both at once, about 6 s; jars that are missing are downloaded first.

    Args:
        folder: Gets `kafka/` and `s3/`.
        env: Where to look for Java and the jar cache.
        kafka_port: Port of the broker; a free one if not given.
        s3_port: Port of the S3 server; a free one if not given.
        console: Shows progress while jars are downloaded.

    Raises:
        IngestError: As `start_kafka` and `start_s3` do; the other one is ended then.
    """
    fetch_jars(env, console)
    with ThreadPoolExecutor(2) as pool:
        kafka = pool.submit(start_kafka, folder / "kafka", env=env, port=kafka_port)
        s3 = pool.submit(start_s3, folder / "s3", env=env, bucket=BUCKET, port=s3_port)
        try:
            return Services(kafka.result(), s3.result())
        except BaseException:
            for future in (kafka, s3):
                _stop_started(future)
            raise


def fetch_jars(env: Mapping[str, str], console: Console | None) -> None:
    """All jars into the cache, one set after the other, so that the progress can be read.

    Raises:
        JarLockError, DiskFullError, JavaNotFoundError: They cannot be had.
    """
    cache, lock = JarCache.from_env(env), load_lock()
    ensure("kafka", cache=cache, lock=lock, console=console)
    ensure("s3", cache=cache, lock=lock, console=console)
    classpath(env, console=console)


def without_foreign(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would lead away from the embedded services, proxies included."""
    kept = {name: value for name, value in env.items() if not name.startswith(_FOREIGN)}
    for name in _NO_PROXY:
        kept[name] = ",".join(filter(None, (kept.get(name), LOOPBACK, "localhost")))
    return kept


def _stop_started(future: Future[KafkaServer] | Future[S3Server]) -> None:
    # Waits for a start that is under way: at most its own deadline, and nothing stays behind.
    with suppress(BaseException):
        future.result().stop()
