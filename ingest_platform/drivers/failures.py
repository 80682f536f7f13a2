"""From whatever Spark, Delta, Kafka or Hadoop threw to one error of the tree.

The classes in the chain of causes decide; a message is looked at only where one class serves
several faults (S3A, and Spark's data-loss error).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

from ingest_platform.errors import (
    DataProblem,
    DiskFullError,
    IngestError,
    KafkaUnreachableError,
    LogDamagedError,
    OffsetsLostError,
    RetryableFault,
    SpecError,
    StorageDeniedError,
    StorageUnavailableError,
    TopicMissingError,
)

_DEPTH: Final = 20


@dataclass(frozen=True)
class Cause:
    """One throwable of a chain: simple class name and message."""

    kind: str
    message: str


@dataclass(frozen=True)
class _Rule:
    error: type[IngestError]
    remedy: str
    kinds: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def matches(self, cause: Cause) -> bool:
        named = not self.kinds or cause.kind in self.kinds
        said = not self.texts or any(text in cause.message for text in self.texts)
        return named and said


_RULES = (
    _Rule(
        OffsetsLostError,
        "nothing was skipped; `ingest-platform repair plan` shows the exact gap",
        texts=("KAFKA_DATA_LOSS", "OffsetOutOfRange", "failOnDataLoss"),
    ),
    _Rule(
        OffsetsLostError,
        "nothing was skipped; `ingest-platform repair plan` shows the exact gap",
        kinds=("OffsetOutOfRangeException",),
    ),
    _Rule(
        LogDamagedError,
        "`ingest-platform audit` names the missing entries; bring them back from a backup",
        texts=("DELTA_VERSIONS_NOT_CONTIGUOUS", "DELTA_TRUNCATED_TRANSACTION_LOG"),
    ),
    _Rule(
        DiskFullError,
        "free space on that file system; the stream goes on where it was",
        texts=("No space left on device", "Disk quota exceeded"),
    ),
    _Rule(
        StorageDeniedError,
        "check the bucket's name and policy, and the AWS_* variables of the driver",
        kinds=("AccessDeniedException", "UnknownStoreException", "AWSBadRequestException"),
    ),
    _Rule(
        StorageUnavailableError,
        "check the object store; the stream is started again by itself",
        kinds=(
            "AWSServiceIOException",
            "AWSStatus500Exception",
            "AWSServiceThrottledException",
            "AWSClientIOException",
            "AWSApiCallTimeoutException",
            "SdkClientException",
            "NoHttpResponseException",
            "ConnectTimeoutException",
            "HttpHostConnectException",
        ),
    ),
    _Rule(
        SpecError,
        "mend source.options, or the KAFKA_* variables of the driver",
        kinds=("ConfigException",),
    ),
    _Rule(
        TopicMissingError,
        "create the topic, or correct source.topic",
        kinds=("UnknownTopicOrPartitionException", "TopicAuthorizationException"),
    ),
    _Rule(
        KafkaUnreachableError,
        "check that the brokers run and can be reached; the stream is started again by itself",
        kinds=(
            "TimeoutException",
            "DisconnectException",
            "NetworkException",
            "BrokerNotAvailableException",
        ),
    ),
)


def classify(error: BaseException, *, where: str) -> IngestError:
    """The error of the tree that says best what `error` is; itself if it is of the tree already."""
    if isinstance(error, IngestError):
        return error
    chain = list(causes(error))
    for rule in _RULES:
        for cause in chain:
            if rule.matches(cause):
                return rule.error(_line(cause), where=where, remedy=rule.remedy)
    if any(cause.kind == "ConcurrentTransactionException" for cause in chain):
        return DataProblem(
            "another driver committed this batch first",
            where=where,
            remedy="find out what writes this stream beside the platform",
        )
    first = chain[-1] if chain else Cause(type(error).__name__, str(error))
    return RetryableFault(
        _line(first), where=where, remedy="see the driver's log; the stream is started again"
    )


def causes(error: BaseException) -> Iterator[Cause]:
    """The chain of causes, outermost first, across the border between Python and the JVM."""
    yield Cause(type(error).__name__, str(error))
    throwable: Any = getattr(error, "_origin", error)  # PySpark's own exceptions keep Py4J's there
    if isinstance(throwable, Py4JJavaError):
        throwable = throwable.java_exception
    for _ in range(_DEPTH):
        if not isinstance(throwable, JavaObject):  # py4j finds any attribute: no use to ask for one
            break
        java = cast(Any, throwable)
        yield Cause(str(java.getClass().getSimpleName()), str(java.getMessage() or ""))
        throwable = java.getCause()
    if error.__cause__ is not None:
        yield from causes(error.__cause__)


def _line(cause: Cause) -> str:
    text = next((line.strip() for line in cause.message.splitlines() if line.strip()), "")
    return f"{cause.kind}: {text[:500]}" if text else cause.kind
