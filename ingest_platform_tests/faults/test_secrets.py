"""A secret put into every credential appears nowhere but where it is used (fault 32)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from ingest_platform.adapters.s3_objects import s3_client
from ingest_platform.components.kafka_delta_table import stream_definitions
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long, QUIET]

SENTINEL = "s3ntinel-9f8e7d"
SECRETS = {
    "KAFKA_SASL_PASSWORD": f"{SENTINEL}-kafka",
    "KAFKA_SSL_KEY_PASSWORD": f"{SENTINEL}-key",
    "KAFKA_SASL_USERNAME": "ingest",
    "KAFKA_SASL_MECHANISM": "PLAIN",
}
COMMANDS = (
    ("check", "--json"),
    ("status", "--json"),
    ("audit", "stream", "--data", "--topic", "--json"),
    ("repair", "plan", "stream", "--json"),
    ("quarantine", "list", "stream", "--json"),
)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT"},
        {"AWS_SECRET_ACCESS_KEY": f"{SENTINEL}-s3"},
    ],
    ids=["all is well", "login refused", "signature refused"],
)
def test_a_secret_appears_nowhere(
    wrong: dict[str, str],
    kafka: KafkaServer,
    topic: Callable[..., str],
    deploy: Callable[..., DeployedStream],
    s3: S3Bucket,
    tmp_path: Path,
) -> None:
    """Neither when all is well, nor in what is said when a login or a signature is refused."""
    name = topic(1)
    produce(kafka.bootstrap_servers, name, as_records([b'{"id":1}', b"{"]))
    stream = deploy(name, "id BIGINT", s3=s3)
    stream = replace(stream, environ={**stream.environ, **SECRETS, **wrong})
    driver = stream.start("--available-now", "--debug")
    code = driver.popen.wait(150)
    driver.stop()
    assert code == (3 if wrong else 0), driver.log_tail()
    said = "\n".join(told(stream, arguments) for arguments in COMMANDS)
    said += repr(stream.spec) + repr(stream.storage) + run_in_dagster(stream, tmp_path)
    secrets = {SENTINEL, s3.secret_key}
    assert not [secret for secret in secrets if secret in said]
    found = {
        where
        for where, content in (*files(tmp_path), *objects(stream, s3))
        for secret in secrets
        if secret.encode() in content
    }
    assert not found


def told(stream: DeployedStream, arguments: tuple[str, ...]) -> str:
    """Everything that a command prints."""
    defs = str(stream.file.parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "ingest_platform.cli", "--debug", *arguments],
        env={**stream.environ, "INGEST_DEFS": defs},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def run_in_dagster(stream: DeployedStream, tmp_path: Path) -> str:
    """Plan a repair from the UI; what the run's events and metadata say."""
    home = tmp_path / "dagster"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.local_temp(str(home)) as made:
        for key in [k for k in os.environ if k.startswith(("AWS_", "KAFKA_"))]:
            patch.delenv(key)
        for key, value in stream.environ.items():
            patch.setenv(key, value)
        resources = {
            "s3": S3Resource.from_environment(stream.environ),
            "launcher": LauncherResource(log_dir=str(tmp_path / "logs")),
        }
        mine = stream_definitions(stream.spec, stream.file)
        defs = dg.Definitions.merge(mine, dg.Definitions(resources=resources))
        job = defs.resolve_job_def("stream_repair")
        result = job.execute_in_process(instance=made, raise_on_error=False)
        events = [str(record) for record in made.all_logs(result.run_id)]
    return json.dumps(events)


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All that was left on disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()


def objects(stream: DeployedStream, s3: S3Bucket) -> Iterator[tuple[str, bytes]]:
    """All that was left in the bucket: status, journal, logs of tables, data."""
    good: Mapping[str, str] = {**stream.environ, **s3.environment()}
    client = s3_client(replace(stream, environ=good).storage)
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=s3.bucket):
        for item in page.get("Contents", ()):
            body = client.get_object(Bucket=s3.bucket, Key=item["Key"])["Body"]
            yield item["Key"], body.read()
