"""State objects on S3 for whoever mostly reads: `status` looks at hundreds within a second."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ingest_platform.adapters.s3_reads import NotSmoothError, checked_key, s3_reads
from ingest_platform.spec.environment import StorageEnvironment

if TYPE_CHECKING:
    from ingest_platform.adapters.s3_objects import S3Objects


class QuickS3Objects:
    """An `ObjectStore` that reads the short way; boto3 does the rest, imported when needed."""

    def __init__(self, storage: StorageEnvironment, bucket: str, prefix: str) -> None:
        self._storage, self._bucket, self._prefix = storage, bucket, prefix

    @property
    def root(self) -> str:
        """The prefix that keys are relative to."""
        return f"s3a://{self._bucket}/{self._prefix}".rstrip("/")

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None."""
        whole = f"{self._prefix}/{checked_key(key)}" if self._prefix else checked_key(key)
        try:
            return s3_reads(self._storage, self._bucket).get(whole)
        except NotSmoothError:
            return self._thorough.get(key)

    def put(self, key: str, data: bytes) -> None:
        """Write or replace."""
        self._thorough.put(key, data)

    def create(self, key: str, data: bytes) -> bool:
        """Write only if there is none."""
        return self._thorough.create(key, data)

    def list(self, prefix: str) -> list[str]:
        """Keys below a folder."""
        return self._thorough.list(prefix)

    def delete(self, key: str) -> None:
        """Remove, if there is one."""
        self._thorough.delete(key)

    @cached_property
    def _thorough(self) -> S3Objects:
        # boto3 takes half a second to import.
        from ingest_platform.adapters.s3_objects import S3Objects, s3_client  # noqa: PLC0415

        return S3Objects(s3_client(self._storage), self._bucket, self._prefix)
