"""The files below a table's path as storage has them: listed, and deleted, many at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from ingest_platform.adapters.local_objects import storage_error
from ingest_platform.adapters.s3_objects import s3_client, s3_error
from ingest_platform.errors import StorageDeniedError
from ingest_platform.spec.environment import StorageEnvironment

_AT_ONCE: Final = 1000  # what one DeleteObjects takes
_THREADS: Final = 4
_SLOW_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file, or a folder of a file system.

    Attributes:
        path: As Spark names it: `s3a://bucket/key` or `file:/path`.
        bytes: Its size.
        modified_ms: Epoch milliseconds, by the storage's clock.
        folder: Whether it is a folder.
    """

    path: str
    bytes: int
    modified_ms: int
    folder: bool = False


class TableStorage(Protocol):
    """Storage of one table.

    Methods raise `StorageUnavailableError` or `StorageDeniedError` when the storage does not do
    what is asked.
    """

    def files(self) -> Iterator[StoredFile]:
        """All files and folders but hidden ones, such as the log."""
        ...

    def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Bytes by path, of those that exist."""
        ...

    def remove(self, paths: Sequence[str]) -> int:
        """Delete files and empty folders; how many were asked for. Missing ones are no error."""
        ...


def table_storage(path: str, storage: StorageEnvironment, *, per_second: int) -> TableStorage:
    """The storage of the table at `path`, deleting `per_second` files at most."""
    pace = Pace(per_second)
    if path.startswith("s3a://"):
        return S3TableStorage(path, storage, pace)
    return LocalTableStorage(Path(path), pace)


class Pace:
    """Spreads work so that no more than a number of items is begun per second."""

    def __init__(
        self,
        per_second: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._per_second, self._clock, self._sleep = per_second, clock, sleep
        self._free_at = clock()

    def take(self, items: int) -> None:
        """Wait until so many items may be begun."""
        now = self._clock()
        if self._free_at > now:
            self._sleep(self._free_at - now)
        self._free_at = max(now, self._free_at) + items / self._per_second

    def batch(self) -> int:
        """Items to take at a time: what a second allows, and what one request can name."""
        return min(_AT_ONCE, self._per_second)


class LocalTableStorage:
    """A table on a file system."""

    def __init__(self, root: Path, pace: Pace) -> None:
        self._root, self._pace = root, pace

    def files(self) -> Iterator[StoredFile]:
        """Walk the folders."""
        return self._walk(self._root)

    def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Ask for each."""
        found = {}
        for path in paths:
            with suppress(FileNotFoundError):
                found[path] = self._local(path).stat().st_size
        return found

    def remove(self, paths: Sequence[str]) -> int:
        """Unlink each; folders after what was in them."""
        for some in _chunks(sorted(paths, reverse=True), self._pace.batch()):
            self._pace.take(len(some))
            for path in some:
                self._remove(self._local(path))
        return len(paths)

    def _remove(self, path: Path) -> None:
        try:
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):  # not empty any more: a writer was quicker
                    path.rmdir()
            else:
                path.unlink(missing_ok=True)
                # Hadoop's own companion of the file.
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, path) from error

    def _walk(self, folder: Path) -> Iterator[StoredFile]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if _hidden(entry.name):
                        continue
                    stat = entry.stat()
                    is_folder = entry.is_dir(follow_symlinks=False)
                    modified = stat.st_mtime_ns // 1_000_000
                    size = 0 if is_folder else stat.st_size
                    yield StoredFile(f"file:{entry.path}", size, modified, is_folder)
                    if is_folder:
                        yield from self._walk(Path(entry.path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, folder) from error

    @staticmethod
    def _local(path: str) -> Path:
        return Path("/" + path.removeprefix("file:").lstrip("/"))


class S3TableStorage:
    """A table on S3: 1,000 keys in each request, where a file system's calls take one or more."""

    def __init__(self, path: str, storage: StorageEnvironment, pace: Pace) -> None:
        self._bucket, _, prefix = path.removeprefix("s3a://").partition("/")
        self._prefix = f"{prefix}/"
        self._client: Any = s3_client(storage, read_timeout=_SLOW_SECONDS)
        self._pace = pace

    def files(self) -> Iterator[StoredFile]:
        """List all keys below the table; folders do not exist."""
        return self._list(self._prefix)

    def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        """From listings of the folders that the files are in."""
        wanted = set(paths)
        folders = sorted({self._key(path).rpartition("/")[0] + "/" for path in paths})
        found = (file for folder in folders for file in self._list(folder, delimiter="/"))
        return {file.path: file.bytes for file in found if file.path in wanted}

    def remove(self, paths: Sequence[str]) -> int:
        """DeleteObjects, some requests at a time."""
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="vacuum") as pool:
            running = []
            for some in _chunks(paths, self._pace.batch()):
                self._pace.take(len(some))
                running.append(pool.submit(self._delete, some))
            for task in running:
                task.result()
        return len(paths)

    def _delete(self, paths: Sequence[str]) -> None:
        keys = [{"Key": self._key(path)} for path in paths]
        where = f"s3a://{self._bucket}/{self._prefix}"
        try:
            answer = self._client.delete_objects(
                Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True}
            )
        except (BotoCoreError, ClientError) as error:
            raise s3_error(error, where) from error
        refused = answer.get("Errors") or ()
        if refused:
            first = refused[0]
            raise StorageDeniedError(
                f"S3 refused to delete {len(refused)} of {len(keys)} files "
                f"({first.get('Code')} for {first.get('Key')})",
                where=where,
                remedy="allow s3:DeleteObject to the platform's credentials",
            )

    def _list(self, prefix: str, delimiter: str = "") -> Iterator[StoredFile]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=prefix, Delimiter=delimiter
        )
        try:
            for page in pages:
                for item in page.get("Contents", ()):
                    below = item["Key"].removeprefix(self._prefix)
                    if item["Key"].endswith("/") or any(map(_hidden, below.split("/"))):
                        continue
                    modified = int(item["LastModified"].timestamp() * 1000)
                    yield StoredFile(f"s3a://{self._bucket}/{item['Key']}", item["Size"], modified)
        except (BotoCoreError, ClientError) as error:
            raise s3_error(error, f"s3a://{self._bucket}/{prefix}") from error

    def _key(self, path: str) -> str:
        return path.removeprefix(f"s3a://{self._bucket}/")


def _hidden(name: str) -> bool:
    """Whether Delta leaves it alone; partition folders and change data may begin so too."""
    kept = name.startswith(("_change_data", "_delta_index")) or "=" in name
    return name.startswith(("_", ".")) and not kept


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]
