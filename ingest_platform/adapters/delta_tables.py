"""Delta tables as delta-rs opens them: no JVM; its options, and its errors as those of the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from ingest_platform.errors import (
    IngestError,
    LogDamagedError,
    StorageDeniedError,
    StorageUnavailableError,
)
from ingest_platform.spec.environment import StorageEnvironment

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_HOLE = re.compile(r'filename: "(\d{20}\.json)"')
# delta-rs has no error classes for these.
_NOT_CONTIGUOUS = "Expected contiguous commit files"
_CUT_OFF = re.compile(r"CRC file version (\d+) is newer than log segment version (\d+)")
_DENIED = re.compile(r"\b(403|401|AccessDenied|NoSuchBucket|InvalidAccessKeyId|Signature)", re.I)

# A column chunk takes longer than a log entry, for which the ordinary limits are chosen.
PATIENT: Final = {"timeout": "60s", "retry_timeout": "120s"}


def open_table(path: str, storage: StorageEnvironment) -> DeltaTable | None:
    """The newest version of the table at `path`; None if there is no table.

    Raises:
        StorageUnavailableError, StorageDeniedError, LogDamagedError: Its log cannot be read.
    """
    with errors_of(path):
        try:
            return DeltaTable(path, storage_options=options_for(path, storage))
        except TableNotFoundError:
            return None


def options_for(path: str, storage: StorageEnvironment) -> dict[str, str] | None:
    """delta-rs's options for the table at `path`; None for a local one."""
    return storage_options(storage) if path.startswith(("s3a://", "s3://")) else None


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
