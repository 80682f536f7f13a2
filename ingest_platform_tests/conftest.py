"""Real services shared by the whole run: started when first asked for, ended with the run.

Isolation is by name: each test makes its own topics (`topic`) and has a bucket of its own (`s3`).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ingest_platform.embedded.kafka import KafkaServer, start_kafka
from ingest_platform.embedded.s3 import S3Server, start_s3
from ingest_platform.embedded.topics import ensure_topic

if TYPE_CHECKING:  # importing Spark takes longer than many a test
    from pyspark.sql import SparkSession

    from ingest_platform_tests.deployed_stream import DeployedStream


_SERVERS = {"kafka", "s3_server"}

KAFKA_LOGIN = ("ingest", "br0ker-s3cret")  # for the broker's second port


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a server are slow, so that `make test-fast` needs no Java and no jars."""
    for item in items:
        wanted = set(getattr(item, "fixturenames", ()))
        params = getattr(getattr(item, "callspec", None), "params", {})
        if wanted & _SERVERS or "s3" in params.values():
            item.add_marker(pytest.mark.slow)


@dataclass(frozen=True)
class S3Bucket:
    """A fresh bucket on the shared S3 server.

    Attributes:
        endpoint: URL for clients, with path-style addresses.
        access_key: For this server.
        secret_key: For this server.
        region: To sign for.
        bucket: Empty at the start of the test.
    """

    endpoint: str
    access_key: str
    secret_key: str
    region: str
    bucket: str

    def environment(self, endpoint: str | None = None) -> dict[str, str]:
        """AWS_* variables for a child process or client; `endpoint` may name a proxy."""
        return {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
        }

    def hadoop_settings(self, endpoint: str | None = None) -> dict[str, str]:
        """S3A settings without Spark's `spark.hadoop.` prefix; `endpoint` may name a proxy."""
        return {
            "fs.s3a.endpoint": endpoint or self.endpoint,
            "fs.s3a.endpoint.region": self.region,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": self.access_key,
            "fs.s3a.secret.key": self.secret_key,
        }


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """The run's broker. A test that kills or stops a broker starts one of its own."""
    folder = tmp_path_factory.mktemp("kafka")
    with start_kafka(folder, env=os.environ, login=KAFKA_LOGIN) as server:
        yield server


@pytest.fixture
def topic(kafka: KafkaServer) -> Callable[..., str]:
    """Makes topics: `topic(partitions=3)` or `topic(3, {"retention.ms": "1000"})` -> name."""

    def make(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = f"t-{uuid.uuid4().hex[:12]}"
        ensure_topic(kafka.bootstrap_servers, name, partitions=partitions, config=config)
        return name

    return make


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """The run's S3 server; most tests want `s3`, which adds a bucket of their own."""
    folder: Path = tmp_path_factory.mktemp("s3")
    with start_s3(folder, env=os.environ, bucket="shared") as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server) -> S3Bucket:
    """A bucket of this test's own."""
    bucket = f"b-{uuid.uuid4().hex[:12]}"
    s3_server.ensure_bucket(bucket)
    return S3Bucket(
        s3_server.endpoint,
        s3_server.access_key,
        s3_server.secret_key,
        s3_server.region,
        bucket,
    )


@pytest.fixture(scope="session")
def spark(s3_server: S3Server) -> Iterator[SparkSession]:
    """The run's Spark session, opened as every session of the platform is, fit for S3."""
    from ingest_platform.spark.session import open_session
    from ingest_platform.spec import SparkSpec, StorageEnvironment

    storage = StorageEnvironment.model_validate(
        {
            "endpoint_url": s3_server.endpoint,
            "access_key_id": s3_server.access_key,
            "secret_access_key": s3_server.secret_key,
            "region": s3_server.region,
            "path_style": True,
        }
    )
    spec = SparkSpec(master="local[2]", driver_memory="2g")
    with open_session(
        spec, storage, app_name="ingest-tests", environ=os.environ, on_s3=True
    ) as session:
        yield session


@pytest.fixture
def deploy(kafka: KafkaServer, tmp_path: Path) -> Callable[..., DeployedStream]:
    """Deploys streams: `deploy(topic, "id BIGINT", name=..., s3=..., **attributes)`.

    Everything is below `tmp_path`, but for table and state if a bucket is given.
    """
    from ingest_platform_tests.deployed_stream import DeployedStream, spec_document

    def make(
        topic: str,
        schema: str = "id BIGINT",
        *,
        name: str = "stream",
        s3: S3Bucket | None = None,
        **attributes: dict[str, Any] | str,
    ) -> DeployedStream:
        lake = f"s3a://{s3.bucket}/lake" if s3 else str(tmp_path / "lake")
        folder = tmp_path / "defs" / name
        folder.mkdir(parents=True)
        document = spec_document(name, topic, schema, f"{lake}/{name}", attributes)
        (folder / "defs.yaml").write_text(yaml.safe_dump(document))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "KAFKA_"))}
        environ = {
            **inherited,
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "INGEST_LOG_DIR": str(tmp_path / "logs"),
            **(s3.environment() if s3 else {}),
        }
        return DeployedStream(folder / "defs.yaml", environ)

    return make
