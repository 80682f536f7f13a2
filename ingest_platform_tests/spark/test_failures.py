"""Real failures of storage and brokers, as the error that a person is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from ingest_platform.drivers.failures import classify
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import (
    IngestError,
    KafkaUnreachableError,
    SpecError,
    StorageDeniedError,
    StorageUnavailableError,
)
from ingest_platform_tests.conftest import S3Bucket

pytestmark = pytest.mark.slow

# One try, so that a failure does not take minutes; another bucket means another client in S3A.
IMPATIENT = {"fs.s3a.attempts.maximum": "1", "fs.s3a.retry.limit": "0"}


def failure(action: Callable[[], object]) -> IngestError:
    with pytest.raises(Exception) as raised:  # noqa: PT011  (whatever Spark makes of it)
        action()
    return classify(raised.value, where="here")


def test_bucket_that_does_not_exist(spark: SparkSession) -> None:
    """Waiting does not make a bucket: no endless restarts."""
    error = failure(lambda: spark.range(1).write.parquet("s3a://no-such-bucket/t"))
    assert isinstance(error, StorageDeniedError)
    assert error.what.startswith("UnknownStoreException")


def test_wrong_credentials(spark: SparkSession, s3: S3Bucket) -> None:
    """A 403 in the middle of a run is told as what it is."""
    writer = spark.range(1).write.options(**IMPATIENT, **{"fs.s3a.access.key": "other"})
    assert isinstance(failure(lambda: writer.parquet(f"s3a://{s3.bucket}/t")), StorageDeniedError)


def test_storage_that_does_not_answer(spark: SparkSession) -> None:
    """An outage heals: the supervisor backs off and tries again."""
    options = IMPATIENT | {"fs.s3a.endpoint": "http://127.0.0.1:9"}
    writer = spark.range(1).write.options(**options)
    error = failure(lambda: writer.parquet("s3a://another-bucket/t"))
    assert isinstance(error, StorageUnavailableError)


def test_brokers_that_do_not_answer(spark: SparkSession) -> None:
    """The same for Kafka, also when it goes away under a running driver."""
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:9",
        "subscribe": "t",
        "kafka.default.api.timeout.ms": "1000",
        "kafka.request.timeout.ms": "1000",
    }
    reader = spark.read.format("kafka").options(**options)
    assert isinstance(failure(lambda: reader.load().count()), KafkaUnreachableError)


def test_option_that_kafka_refuses(
    spark: SparkSession, kafka: KafkaServer, topic: Callable
) -> None:
    """It is in the spec, and stays wrong until someone mends it."""
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic(),
        "kafka.max.poll.records": "many",
    }
    error = failure(lambda: spark.read.format("kafka").options(**options).load().collect())
    assert isinstance(error, SpecError)
    assert "max.poll.records" in error.what


def test_unknown_failures_name_their_root(spark: SparkSession) -> None:
    """The outermost exception says `Job aborted`; the innermost says what to look for."""
    column = spark.range(1).selectExpr("raise_error('the root')")
    assert "the root" in failure(column.collect).what
