"""The driver's entry point with bad input: one clear message, the right exit code, no litter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

SENTINEL = "hunter2-sentinel"
TRACES = ("Traceback (most recent call last)", "\tat ", "Caused by:", "py4j.", "pydantic")


def run(stream: DeployedStream, *arguments: str) -> tuple[int, str]:
    """Exit code and all that it printed."""
    driver = stream.start("--available-now", *arguments)
    try:
        code = driver.popen.wait(timeout=120)
    finally:
        driver.stop()
    return code, driver.log.read_text()


def assert_clear(output: str, *parts: str) -> None:
    """One message with what, where and remedy; nothing of the machinery behind it."""
    for part in (*parts, "remedy: "):
        assert part in output
    for trace in TRACES:
        assert trace not in output, output
    assert output.count("remedy: ") == 1


def litter(stream: DeployedStream) -> list[Path]:
    lake = Path(stream.spec.table.path).parent
    return [p for p in lake.rglob("*") if p.is_file()] if lake.exists() else []


def test_unreachable_kafka(deploy: Deploy) -> None:
    """A fault that heals: exit code 3, so that the supervisor tries again."""
    stream = deploy("t", source={"bootstrap_servers": "127.0.0.1:9"})
    code, output = run(stream)
    assert code == 3
    assert_clear(output, "Kafka does not answer", "127.0.0.1:9")
    assert litter(stream) == []


def test_missing_topic(deploy: Deploy) -> None:
    """Kafka's own clients wait for it for minutes; a mistyped name is told at once."""
    stream = deploy("no-such-topic")
    code, output = run(stream)
    assert code == 3
    assert_clear(output, "topic 'no-such-topic' does not exist", "source.topic")
    assert litter(stream) == []


def test_missing_bucket(deploy: Deploy, topic: MakeTopic, s3: S3Bucket) -> None:
    """Found before Spark starts, not by its retries."""
    stream = deploy(topic(), s3=replace(s3, bucket="no-such-bucket"))
    code, output = run(stream)
    assert code == 3
    assert_clear(output, "the bucket does not exist", "s3a://no-such-bucket")


def test_denied_bucket(deploy: Deploy, topic: MakeTopic, s3: S3Bucket, s3_server: Any) -> None:
    """The message must not show the key that was refused."""
    stream = deploy(topic(), s3=replace(s3, secret_key=SENTINEL))
    code, output = run(stream)
    assert code == 3
    assert_clear(output, "S3 refused the request", f"s3a://{s3.bucket}")
    assert SENTINEL not in output
    with pytest.raises(ClientError):
        s3_server.client().head_object(Bucket=s3.bucket, Key="_ingest_probe")


def test_bad_ddl(deploy: Deploy, topic: MakeTopic) -> None:
    """Only Spark's parser knows; its stack trace stays where it is."""
    stream = deploy(topic(), "id BIGINT, name STRNG")
    code, output = run(stream)
    assert code == 2
    assert_clear(output, "not valid DDL", "STRNG", "decode.schema")
    assert not Path(stream.spec.table.path).exists()


def test_unset_variable(deploy: Deploy) -> None:
    """The message names the variable and the field that wants it."""
    stream = deploy("t", source={"bootstrap_servers": "{{ env.NO_SUCH_VARIABLE }}"})
    code, output = run(stream)
    assert code == 2
    assert_clear(output, "NO_SUCH_VARIABLE is not set", "source.bootstrap_servers", "defs.yaml")


def test_literal_secret(deploy: Deploy) -> None:
    """A secret in a spec is in git for ever; the message must not spread it further."""
    stream = deploy("t", source={"options": {"kafka.sasl.jaas.config": SENTINEL}})
    code, output = run(stream)
    assert code == 2
    assert_clear(output, "a secret stands literally in the spec", "kafka.sasl.jaas.config")
    assert SENTINEL not in output


def test_unknown_field(deploy: Deploy) -> None:
    """A mistyped field that is ignored is a setting that someone believes in."""
    stream = deploy("t", tabel={"path": "/x"})
    code, output = run(stream)
    assert code == 2
    assert_clear(output, "tabel: Extra inputs are not permitted", "defs.yaml")


def test_file_with_two_streams(deploy: Deploy, topic: MakeTopic) -> None:
    """A file may declare several; which one is meant must be said."""
    stream = deploy("t")
    document = yaml.safe_load(stream.file.read_text())
    other = {**document, "attributes": {**document["attributes"], "name": "other"}}
    stream.file.write_text(yaml.safe_dump_all([document, other]))
    code, output = run(stream)
    assert code == 2
    assert_clear(output, "2 streams found", "stream, other", "--name")


def test_no_java(deploy: Deploy, topic: MakeTopic, tmp_path: Path) -> None:
    """The first thing that a new machine lacks; one command mends it."""
    stream = deploy(topic())
    blind = replace(stream, environ={**stream.environ, "JAVA_HOME": "", "PATH": str(tmp_path)})
    if list(Path("/usr/lib/jvm").glob("*/bin/java")):
        pytest.skip("the system's folder has a Java, which is found without PATH")
    code, output = run(blind)
    assert code == 3
    assert_clear(output, "no Java")
