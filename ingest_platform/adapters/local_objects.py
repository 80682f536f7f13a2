"""State objects as files. A file appears whole or not at all, also after a crash."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest_platform.errors import (
    DiskFullError,
    IngestError,
    StorageDeniedError,
    StorageUnavailableError,
    UnsafeStorageError,
)

_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}
_FULL = {errno.ENOSPC, errno.EDQUOT}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_TEMPORARY = ".tmp-"  # never listed, so a temp file that a crash left behind is no object


class LocalObjects:
    """An `ObjectStore` on a file system with hard links; folders are made as needed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def root(self) -> str:
        """The folder that keys are relative to."""
        return str(self._root)

    def get(self, key: str) -> bytes | None:
        """The file's bytes, or None."""
        path = self._path(key)
        with _errors_of(path):
            try:
                return path.read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None

    def put(self, key: str, data: bytes) -> None:
        """Write a temp file beside the target, then rename it over the target."""
        path = self._path(key)
        with _errors_of(path), _written_beside(path, data) as temporary:
            temporary.replace(path)
            _sync_folder(path.parent)

    def create(self, key: str, data: bytes) -> bool:
        """Hard-link a fully written temp file: a torn file can never be seen as the winner.

        Raises:
            UnsafeStorageError: The file system has no hard links.
        """
        path = self._path(key)
        with _errors_of(path), _written_beside(path, data) as temporary:
            try:
                os.link(temporary, path)
            except OSError as error:
                if _same_file(temporary, path):
                    return True  # NFS: the link was made, its acknowledgement was lost
                if error.errno == errno.EEXIST:
                    return False
                if error.errno in _NO_LINKS:
                    raise _no_links(path) from error
                raise
            _sync_folder(path.parent)
        return True

    def list(self, prefix: str) -> list[str]:
        """Keys below a folder, sorted."""
        folder = self._path(prefix) if prefix.strip("/") else self._root
        with _errors_of(folder):
            return sorted(
                str(Path(parent, name).relative_to(self._root))
                for parent, _, names in os.walk(folder, onerror=_raise_unless_gone)
                for name in names
                if not name.startswith(_TEMPORARY)
            )

    def delete(self, key: str) -> None:
        """Remove the file, if there is one."""
        path = self._path(key)
        with _errors_of(path):
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        parts = key.strip("/").split("/")
        if any(part in {"", ".", ".."} for part in parts):
            raise ValueError(f"{key!r} is not a relative key without '.' and '..'")
        return self._root.joinpath(*parts)


def _raise_unless_gone(error: OSError) -> None:
    """A folder that may not be read is a fault, not an empty one; a vanished one is empty."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


@contextmanager
def _written_beside(path: Path, data: bytes) -> Iterator[Path]:
    """A temp file with `data`, synced, in `path`'s folder; gone afterwards unless renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f"{_TEMPORARY}{uuid.uuid4().hex}"
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _same_file(a: Path, b: Path) -> bool:
    try:
        return a.samefile(b)
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut; the bytes alone would not be found again."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error, path) from error


def storage_error(error: OSError, path: Path) -> IngestError:
    """The error tree's word for an `OSError` on `path`."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return DiskFullError(
            f"no space left: {reason}", where=str(path), remedy="free space or raise the quota"
        )
    if error.errno in _DENIED or isinstance(error, FileExistsError):
        return StorageDeniedError(
            f"the path may not be used: {reason}",
            where=str(path),
            remedy="give this user read and write permission there, or choose another path",
        )
    return StorageUnavailableError(
        f"the file system failed: {reason}",
        where=str(path),
        remedy="check the mount; the operation is repeated by itself",
    )


def _no_links(path: Path) -> UnsafeStorageError:
    return UnsafeStorageError(
        "this file system has no hard links, so two drivers could both take a lease",
        where=str(path.parent),
        remedy="put `state_path` on a POSIX file system or on S3",
    )
