"""Small state objects (status, lease, control) on a local path or on S3, behind one contract."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Protocol

from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.errors import UnsafeStorageError
from ingest_platform.spec.environment import StorageEnvironment


class ObjectStore(Protocol):
    """Objects of a few kilobytes below one root; keys are relative, `a/b/c.json`.

    Every method raises `StorageDeniedError` when the root may not be used, `DiskFullError` when no
    space is left and `StorageUnavailableError` when the store does not answer in bounded time.
    """

    @property
    def root(self) -> str:
        """Where keys are relative to, for messages."""
        ...

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None when there is none."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write or replace atomically: a reader sees the old bytes or the new ones."""
        ...

    def create(self, key: str, data: bytes) -> bool:
        """Write only if there is no such object; True for exactly one of any number of racers.

        Also True when the response to one's own successful write was lost and the repetition found
        it: what is stored then is one's own.
        """
        ...

    def list(self, prefix: str) -> list[str]:
        """Keys below the folder `prefix` at any depth, sorted."""
        ...

    def delete(self, key: str) -> None:
        """Remove the object; it is no error if there is none."""
        ...


def object_store(root: str, storage: StorageEnvironment) -> ObjectStore:
    """The store for `root`: an absolute local path, `file://`, `s3a://` or `s3://`."""
    scheme, separator, rest = root.partition("://")
    if not separator:
        return LocalObjects(Path(root))
    if scheme == "file":
        return LocalObjects(Path(rest))
    # Paid only by those who use S3.
    from ingest_platform.adapters.s3_quick import QuickS3Objects  # noqa: PLC0415

    bucket, _, prefix = rest.partition("/")
    return QuickS3Objects(storage, bucket, prefix.strip("/"))


def prove_conditional_create(objects: ObjectStore, folder: str = "probe") -> None:
    """Refuse a store that accepts a second creation of one object.

    Some S3-compatible servers ignore `If-None-Match`; on those, leases and commits would be lost
    silently.

    Raises:
        UnsafeStorageError: The second creation succeeded too.
    """
    key = f"{folder}/{uuid.uuid4()}"
    try:
        first, second = objects.create(key, b"1"), objects.create(key, b"2")
    finally:
        objects.delete(key)
    if not first or second:
        raise UnsafeStorageError(
            "the store let two writers create one object: it ignores conditional writes "
            "(If-None-Match)",
            where=objects.root,
            remedy="use a store with conditional writes (AWS S3, versitygw, s3proxy, recent Ceph)",
        )
