"""The real broker and the real S3 server: data survives a restart, mistakes are told clearly."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ingest_platform.embedded.kafka import KafkaServer, start_kafka
from ingest_platform.embedded.ports import is_free
from ingest_platform.embedded.s3 import S3Server, start_s3
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform.errors import KafkaUnreachableError, PortTakenError, ServiceStartError
from ingest_platform_tests.conftest import S3Bucket

pytestmark = pytest.mark.slow


def high_watermark(bootstrap_servers: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "t"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1]
    finally:
        consumer.close()


def produce(bootstrap_servers: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "message.max.bytes": 12_000_000})
    producer.produce(topic, value)
    assert producer.flush(20) == 0


def test_kafka_goes_on_with_its_data_after_a_kill(tmp_path: Path) -> None:
    """The demo is ended with Ctrl-C, closed laptops and kill -9, and goes on where it was."""
    with start_kafka(tmp_path / "k", env=os.environ) as first:
        ensure_topic(first.bootstrap_servers, "t", partitions=1)
        produce(first.bootstrap_servers, "t", b"kept")
        first.child.signal(9)
    with start_kafka(tmp_path / "k", env=os.environ) as second:
        assert second.bootstrap_servers == first.bootstrap_servers
        assert high_watermark(second.bootstrap_servers, "t") == 1
        with pytest.raises(ServiceStartError, match="in use by process"):
            start_kafka(tmp_path / "k", env=os.environ)
    assert is_free(int(second.bootstrap_servers.split(":")[1]))


def test_topics_are_made_once_and_take_large_records(
    kafka: KafkaServer, topic: Callable[..., str]
) -> None:
    name = topic(partitions=2)
    ensure_topic(kafka.bootstrap_servers, name, partitions=5)
    produce(kafka.bootstrap_servers, name, b"x" * 10_000_000)


def test_a_mistyped_topic_is_not_made(kafka: KafkaServer) -> None:
    with pytest.raises(KafkaException):
        high_watermark(kafka.bootstrap_servers, "never-made")


def test_an_unreachable_broker_is_named() -> None:
    with pytest.raises(KafkaUnreachableError, match=r"127\.0\.0\.1:1"):
        ensure_topic("127.0.0.1:1", "t", partitions=1, timeout=1)


def test_a_taken_port_is_refused_and_leaves_nothing(kafka: KafkaServer, tmp_path: Path) -> None:
    port = int(kafka.bootstrap_servers.split(":")[1])
    with pytest.raises(PortTakenError, match=str(port)):
        start_kafka(tmp_path / "k", env=os.environ, port=port)
    with pytest.raises(PortTakenError, match=str(port)):
        start_s3(tmp_path / "s", env=os.environ, bucket="lake", port=port)


def test_s3_goes_on_with_its_data(tmp_path: Path) -> None:
    with start_s3(tmp_path / "s", env=os.environ, bucket="lake") as first:
        first.client().put_object(Bucket="lake", Key="a/b", Body=b"kept")
    with start_s3(tmp_path / "s", env=os.environ, bucket="lake") as second:
        assert second.endpoint == first.endpoint
        assert second.client().get_object(Bucket="lake", Key="a/b")["Body"].read() == b"kept"


def test_s3_refuses_wrong_keys(s3_server: S3Server) -> None:
    """A server that lets anyone in would hide every credential mistake from the tests."""
    from dataclasses import replace

    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        replace(s3_server, secret_key="wrong").client().list_buckets()


def test_s3_completes_uploads_conditionally(s3: S3Bucket, s3_server: S3Server) -> None:
    """Commits above the part size rest on this one."""
    client = s3_server.client()
    client.put_object(Bucket=s3.bucket, Key="k", Body=b"first")
    upload = client.create_multipart_upload(Bucket=s3.bucket, Key="k")["UploadId"]
    part = client.upload_part(
        Bucket=s3.bucket, Key="k", UploadId=upload, PartNumber=1, Body=b"second"
    )
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.complete_multipart_upload(
            Bucket=s3.bucket, Key="k", UploadId=upload, MultipartUpload=parts, IfNoneMatch="*"
        )


def test_a_bad_bucket_name_is_refused(s3_server: S3Server) -> None:
    with pytest.raises(ValueError, match="3 to 63"):
        s3_server.ensure_bucket("B1")
