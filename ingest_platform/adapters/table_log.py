"""What a Delta table's log says, read by delta-rs: no JVM, cheap enough for every sensor tick."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from ingest_platform.errors import (
    IngestError,
    LogDamagedError,
    StorageDeniedError,
    StorageUnavailableError,
)
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.commit import Commit
from ingest_platform.model.ledger import Ledger
from ingest_platform.spec.environment import StorageEnvironment

_SMALL_BYTES = 32 * 1024 * 1024
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_HOLE = re.compile(r'filename: "(\d{20}\.json)"')
# delta-rs has no error classes for these.
_NOT_CONTIGUOUS = "Expected contiguous commit files"
_CUT_OFF = re.compile(r"CRC file version (\d+) is newer than log segment version (\d+)")
_DENIED = re.compile(r"\b(403|401|AccessDenied|NoSuchBucket|InvalidAccessKeyId|Signature)", re.I)


@dataclass(frozen=True)
class TableSize:
    """The files that make up a table at `version`; `bytes` is their sum, `small` those below 32 MB.

    Reading a smaller file costs more in requests than in bytes.
    """

    version: int
    files: int
    bytes: int
    small: int


class TableLog:
    """The log of one table; keeps its last snapshot and reads only what was added since."""

    def __init__(self, path: str, storage: StorageEnvironment) -> None:
        self._path = path
        self._options = storage_options(storage) if path.startswith("s3a://") else None
        self._table: DeltaTable | None = None
        self._lock = threading.Lock()  # sensors of one code server share the instance

    def version(self) -> int | None:
        """The newest version; None when there is no table yet.

        Raises:
            StorageUnavailableError, StorageDeniedError: The log cannot be read.
        """
        table = self._refreshed()
        return None if table is None else table.version()

    def commits(self, after: int, limit: int = 1000, *, fresh: bool = True) -> list[Commit]:
        """Commits of the versions above `after`, oldest first; only the newest `limit` of them.

        With `fresh=False`, as of the last look, which costs no look for newer commits.
        """
        table = self._refreshed() if fresh else self._known()
        if table is None or table.version() <= after:
            return []
        with self._lock, errors_of(self._path):
            history = table.history(min(limit, table.version() - after))
        commits = (_commit(entry) for entry in history)
        return sorted((c for c in commits if c.version > after), key=lambda c: c.version)

    def size(self, *, fresh: bool = True) -> TableSize | None:
        """Number and bytes of the table's files; None when there is no table yet.

        `fresh` as in `commits`.
        """
        table = self._refreshed() if fresh else self._known()
        if table is None:
            return None
        with self._lock, errors_of(self._path):
            # Without PyArrow, whose import costs `status` more than the whole look.
            sizes = table.get_add_actions().column("size_bytes").to_pylist()
            small = sum(size < _SMALL_BYTES for size in sizes)
            return TableSize(table.version(), len(sizes), sum(sizes), small)

    def forget(self) -> None:
        """Open the log afresh next time: for a caller who learns that the table was made anew.

        An incremental update only looks for commits above the last one known, so it cannot notice.
        """
        with self._lock:
            self._table = None

    def _known(self) -> DeltaTable | None:
        return self._table if self._table is not None else self._refreshed()

    def _refreshed(self) -> DeltaTable | None:
        with self._lock, errors_of(self._path):
            if self._table is not None:
                try:
                    self._table.update_incremental()
                except (DeltaError, OSError):
                    self._table = None  # e.g. its log was cleaned up meanwhile: open it afresh
                else:
                    return self._table
            try:
                self._table = DeltaTable(self._path, storage_options=self._options)
            except TableNotFoundError:
                return None
            return self._table


@lru_cache(maxsize=256)
def table_log(path: str, storage: StorageEnvironment) -> TableLog:
    """The log of the table at `path`, one per process and path, so that ticks stay incremental."""
    return TableLog(path, storage)


def storage_options(storage: StorageEnvironment) -> dict[str, str]:
    """delta-rs's options for S3, with bounded waits. Holds secrets: never log it."""
    secret, token = storage.secret_access_key, storage.session_token
    found = {
        "AWS_ENDPOINT_URL": storage.endpoint_url,
        "AWS_ACCESS_KEY_ID": storage.access_key_id,
        "AWS_SECRET_ACCESS_KEY": secret.get_secret_value() if secret else None,
        "AWS_SESSION_TOKEN": token.get_secret_value() if token else None,
        "AWS_REGION": storage.region,
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false" if storage.path_style else "true",
        "AWS_ALLOW_HTTP": str((storage.endpoint_url or "").startswith("http://")).lower(),
        "timeout": "10s",
        "connect_timeout": "2s",
        "max_retries": "2",
        "retry_timeout": "15s",
    }
    return {name: value for name, value in found.items() if value is not None}


def _commit(entry: Mapping[str, Any]) -> Commit:
    metrics = entry.get("operationMetrics") or {}
    ledger, repair = None, None
    with suppress(ValueError):  # which `ingest-platform audit` reports
        ledger = Ledger.from_user_metadata(entry.get("userMetadata"))
        repair = RepairRecord.from_user_metadata(entry.get("userMetadata"))
    return Commit(
        version=int(entry["version"]),
        timestamp_ms=int(entry.get("timestamp") or 0),
        operation=str(entry.get("operation") or ""),
        metrics={name: int(v) for name, v in metrics.items() if str(v).isdigit()},
        ledger=ledger,
        restored_to=_restored_to(entry),
        repair=repair,
    )


def _restored_to(entry: Mapping[str, Any]) -> int | None:
    if entry.get("operation") != "RESTORE":
        return None
    version = str((entry.get("operationParameters") or {}).get("version"))
    return int(version) if version.isdecimal() else -1


@contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Turn delta-rs's errors about the log of the table at `path` into those of the tree."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise _log_error(error, path) from error


def _log_error(error: Exception, path: str) -> IngestError:
    hole = _hole(str(error))
    if hole:
        return LogDamagedError(
            f"the table's log has a hole: {hole}",
            where=path,
            remedy="`ingest-platform audit` names the missing entries; bring them back from a "
            "backup or a versioned bucket",
        )
    text = " ".join(_ANSI.sub("", str(error)).replace("↳", "").split())[:400]
    if isinstance(error, PermissionError) or _DENIED.search(text):
        return StorageDeniedError(
            f"the table's log may not be read: {text}",
            where=path,
            remedy="check the bucket, the credentials and their policy (Get, List)",
        )
    return StorageUnavailableError(
        f"the table's log cannot be read: {text}",
        where=path,
        remedy="check the storage and AWS_ENDPOINT_URL_S3; it is tried again",
    )


def _hole(text: str) -> str | None:
    """Which entries are missing, if that is why a log cannot be read."""
    names = _HOLE.findall(text) if _NOT_CONTIGUOUS in text else []
    if names:
        return f"entries are missing between {' and '.join(names[:2])}"
    cut_off = _CUT_OFF.search(text)
    if cut_off:
        return f"it ends at version {cut_off[2]}, but version {cut_off[1]} was committed"
    return None
