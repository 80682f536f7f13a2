"""The `_delta_log` folder of a table as names and bytes, on a local path or on S3."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from ingest_platform.adapters.local_objects import storage_error
from ingest_platform.adapters.s3_objects import s3_client, s3_error
from ingest_platform.adapters.s3_reads import NotSmoothError, S3Reads
from ingest_platform.spec.environment import StorageEnvironment


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the log: its name, its size in bytes and when it was written (epoch ms)."""

    name: str
    size: int
    modified: int


class LogFolder(Protocol):
    """Read access to one `_delta_log`.

    Attributes:
        where: The folder, for messages.
        parallel: Reads that are worth having under way at once.
    """

    where: str
    parallel: int

    def entries(self) -> Iterator[Entry]:
        """The files directly in the folder, in any order; none when there is no such folder."""
        ...

    def read(self, name: str, limit: int | None = None) -> bytes | None:
        """A file's first `limit` bytes, or all; None when it is gone."""
        ...


def log_folder(table: str, storage: StorageEnvironment) -> LogFolder:
    """The log of the table at a local path or `s3a://bucket/prefix`."""
    if table.startswith(("s3a://", "s3://")):
        return S3LogFolder(table, storage)
    return LocalLogFolder(Path(table.removeprefix("file://")) / "_delta_log")


class LocalLogFolder:
    """A log on a file system: sequential reads, which the page cache makes fastest."""

    parallel = 1

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.where = str(folder)

    def entries(self) -> Iterator[Entry]:
        """List the folder."""
        try:
            with os.scandir(self._folder) as found:
                for item in found:
                    if item.is_file():
                        stat = item.stat()
                        yield Entry(item.name, stat.st_size, stat.st_mtime_ns // 1_000_000)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, self._folder) from error

    def read(self, name: str, limit: int | None = None) -> bytes | None:
        """Read the file."""
        path = self._folder / name
        try:
            # Unbuffered: the buffer would be made, filled and thrown away for each commit.
            with path.open("rb", buffering=0) as file:
                return file.read(-1 if limit is None else limit)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, path) from error


class S3LogFolder:
    """A log on S3: many small ranged reads at once, since each waits for a round trip."""

    parallel = 64

    def __init__(self, table: str, storage: StorageEnvironment) -> None:
        bucket, _, prefix = table.partition("://")[2].partition("/")
        self._client: Any = s3_client(storage)
        self._reads = S3Reads(storage, bucket)
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/_delta_log/"
        self.where = f"s3a://{bucket}/{self._prefix}".rstrip("/")

    def entries(self) -> Iterator[Entry]:
        """List the folder, without its sub-folders."""
        try:
            listed = self._reads.listed(self._prefix.rstrip("/"))
        except NotSmoothError:
            yield from self._entries_thoroughly()
            return
        for item in listed:
            yield Entry(item.name, item.size, int(item.modified.timestamp() * 1000))

    def _entries_thoroughly(self) -> Iterator[Entry]:
        """With boto3's retries and errors."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix, Delimiter="/"
        )
        try:
            for page in pages:
                for item in page.get("Contents", ()):
                    name = item["Key"].removeprefix(self._prefix)
                    modified = int(item["LastModified"].timestamp() * 1000)
                    yield Entry(name, item["Size"], modified)
        except (BotoCoreError, ClientError) as error:
            raise s3_error(error, self.where) from error

    def read(self, name: str, limit: int | None = None) -> bytes | None:
        """GET, ranged if there is a limit."""
        key = f"{self._prefix}{name}"
        try:
            return self._reads.get(key) if limit is None else self._reads.head(key, limit)
        except NotSmoothError:
            return self._read_thoroughly(key, name, limit)

    def _read_thoroughly(self, key: str, name: str, limit: int | None) -> bytes | None:
        """With boto3's retries and errors."""
        wanted = {} if limit is None else {"Range": f"bytes=0-{limit - 1}"}
        try:
            return self._client.get_object(Bucket=self._bucket, Key=key, **wanted)["Body"].read()
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if status == 404:
                return None
            if status == 416:
                return b""  # an empty object has no first byte
            raise s3_error(error, f"{self.where}/{name}") from error
        except BotoCoreError as error:
            raise s3_error(error, f"{self.where}/{name}") from error
