"""Errors of other systems become one error of the tree: it decides between restart and a person."""

from __future__ import annotations

import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

from ingest_platform.drivers.failures import classify
from ingest_platform.errors import (
    DiskFullError,
    IngestError,
    KafkaUnreachableError,
    LedgerImbalanceError,
    OffsetsLostError,
    RetryableFault,
    StorageDeniedError,
    StorageUnavailableError,
)


class Throwable(JavaObject):
    """A Java throwable as Py4J shows it, but without a JVM behind it."""

    def __init__(self, kind: str, message: str = "", cause: Throwable | None = None) -> None:
        self._kind, self._message, self._cause = kind, message, cause

    def getClass(self) -> Throwable:  # noqa: N802
        return self

    def getSimpleName(self) -> str:  # noqa: N802
        return self._kind

    def getMessage(self) -> str:  # noqa: N802
        return self._message

    def getCause(self) -> Throwable | None:  # noqa: N802
        return self._cause


class JavaError(Py4JJavaError):
    def __init__(self, throwable: Throwable) -> None:
        Exception.__init__(self, "An error occurred while calling o1.start")
        self.java_exception = throwable

    def __str__(self) -> str:
        return "An error occurred while calling o1.start"


@pytest.mark.parametrize(
    ("throwable", "expected"),
    [
        (Throwable("SparkException", "", Throwable("TimeoutException")), KafkaUnreachableError),
        (Throwable("IllegalStateException", "[KAFKA_DATA_LOSS.X] gone"), OffsetsLostError),
        (Throwable("SparkException", "", Throwable("AccessDeniedException")), StorageDeniedError),
        (Throwable("AWSServiceIOException", "503"), StorageUnavailableError),
        (Throwable("IOException", "No space left on device"), DiskFullError),
        (Throwable("WhoKnowsException", "x"), RetryableFault),
    ],
)
def test_java_causes_decide(throwable: Throwable, expected: type[IngestError]) -> None:
    """The cause counts, however deeply Spark wraps it."""
    error = classify(JavaError(throwable), where="stream s")
    assert type(error) is expected
    assert error.where == "stream s"
    assert error.remedy


def test_errors_of_the_tree_pass_unchanged() -> None:
    """A batch that refuses itself has said already what is wrong."""
    error = LedgerImbalanceError("x", remedy="y")
    assert classify(error, where="z") is error


def test_lost_offsets_need_a_person_and_a_dead_broker_does_not() -> None:
    """A restart cannot bring back records; skipping them silently is never done."""
    assert not OffsetsLostError.retryable
    assert OffsetsLostError.exit_code == 4
    assert KafkaUnreachableError.retryable
