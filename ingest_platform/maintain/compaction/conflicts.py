"""Whether an error is another writer's commit that came first, or announced DML that goes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

_DEPTH: Final = 20
_KINDS: Final = (
    "ConcurrentModificationException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "TurnedBackException",  # our LogStores' own: DML in flight was announced
)


def conflict_of(error: BaseException) -> str | None:
    """The kind of conflict, such as `ConcurrentDeleteReadException`; None if it is none.

    By class, in the whole chain of causes: PySpark turns only the outermost exception into
    `delta.exceptions`, so the same conflict arrives as different Python types.
    """
    for kind in _kinds(error):
        if kind.removeprefix("Delta").endswith(_KINDS):
            return kind
    return None


def _kinds(error: BaseException) -> Iterator[str]:
    yield type(error).__name__
    throwable: Any = getattr(error, "_origin", error)  # where PySpark's exceptions keep Py4J's
    if isinstance(throwable, Py4JJavaError):
        throwable = throwable.java_exception
    for _ in range(_DEPTH):
        if not isinstance(throwable, JavaObject):
            break
        java: Any = throwable
        yield str(java.getClass().getSimpleName())
        throwable = java.getCause()
    if error.__cause__ is not None:
        yield from _kinds(error.__cause__)
