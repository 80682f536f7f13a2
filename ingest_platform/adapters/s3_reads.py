"""Small GETs from S3 at a fraction of boto3's cost, outside of Python's lock.

boto3 spends 1.4 ms of CPU on a `get_object` (validation, endpoint rules, events, parsing), and half
a second on its own import; for the 100,000 commits of a long log that is minutes of one core.
obstore (the object store library of delta-rs and Arrow) takes a quarter of that, in threads of its
own. What does not go smoothly is left to boto3, which knows redirects, retries and what errors
mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from ingest_platform.spec.environment import StorageEnvironment

_NO_RETRIES: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=10)}
_HOST_WITHOUT_NAMES = re.compile(r"[\d.]+(:\d+)?/?$|\[")  # an address: no bucket can precede it
_NO_SUCH_KEY = "NoSuchKey"  # the bucket may be what is missing, too


def checked_key(key: str) -> str:
    """A key below a prefix, without slashes around it.

    Raises:
        ValueError: It has parts that are empty, `.` or `..`, which might reach out of the prefix.
    """
    parts = key.strip("/").split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise ValueError(f"{key!r} is not a relative key without '.' and '..'")
    return "/".join(parts)


class NotSmoothError(Exception):
    """It did not work at once: boto3 had better be asked."""


class S3Reads:
    """Reads objects of one bucket; safe to use from many threads.

    Every method raises `NotSmoothError`, and nothing else, when there is no clear answer.
    """

    def __init__(self, storage: StorageEnvironment, bucket: str) -> None:
        self._store = _store(storage, bucket)

    def get(self, key: str) -> bytes | None:
        """An object's bytes; None when the bucket has none of that name."""
        try:
            with _smoothly():
                return bytes(obstore.get(self._store, key).bytes())
        except _MissingError:
            return None

    def head(self, key: str, limit: int) -> bytes | None:
        """An object's first `limit` bytes; None when the bucket has none of that name."""
        try:
            with _smoothly():
                return bytes(obstore.get_range(self._store, key, start=0, end=limit))
        except _MissingError:
            return None

    def listed(self, folder: str, after: str = "") -> list[Listed]:
        """The objects directly in a folder whose names sort behind `after`, in any order."""
        start = len(folder) + 1
        with _smoothly():
            pages = obstore.list(self._store, folder, offset=f"{folder}/{after}" if after else None)
            found = (
                Listed(item["path"][start:], item["size"], item["last_modified"])
                for page in pages
                for item in page
            )
            return [item for item in found if "/" not in item.name]


@dataclass(frozen=True, slots=True)
class Listed:
    """An object of a listing: its name in the folder, size in bytes, time of writing."""

    name: str
    size: int
    modified: datetime


@lru_cache(maxsize=16)
def s3_reads(storage: StorageEnvironment, bucket: str) -> S3Reads:
    """One for each bucket: it keeps its connections."""
    return S3Reads(storage, bucket)


class _MissingError(Exception):
    """There is no such object."""


@contextmanager
def _smoothly() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if _NO_SUCH_KEY in str(error):
            raise _MissingError from error
        raise NotSmoothError from error
    except (BaseError, OSError) as error:
        raise NotSmoothError from error


def _store(storage: StorageEnvironment, bucket: str) -> S3Store:
    """The bucket, addressed as boto3 does: dots in its name do not fit a certificate."""
    endpoint, scheme, host = storage.endpoint_url, *_split(storage.endpoint_url)
    virtual = not (storage.path_style or "." in bucket or _HOST_WITHOUT_NAMES.match(host))
    addressed: dict[str, Any] = {}
    if endpoint:
        addressed["endpoint"] = f"{scheme}://{bucket}.{host}" if virtual else endpoint
    return S3Store(
        bucket,
        **addressed,
        virtual_hosted_style_request=virtual,
        region=storage.region,
        client_options={
            "allow_http": (endpoint or "").startswith("http://"),
            "connect_timeout": "2s",
            "timeout": "10s",
        },
        retry_config=_NO_RETRIES,
        **_credentials(storage),
    )


def _split(endpoint: str | None) -> tuple[str, str]:
    scheme, _, host = (endpoint or "").partition("://")
    return scheme, host


def _credentials(storage: StorageEnvironment) -> dict[str, Any]:
    secret, token = storage.secret_access_key, storage.session_token
    if not (storage.access_key_id and secret):
        # Roles and profiles. Not part of obstore's own import: it brings in boto3's session.
        from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415

        return {"credential_provider": Boto3CredentialProvider()}
    found = {
        "access_key_id": storage.access_key_id,
        "secret_access_key": secret.get_secret_value(),
    }
    return found | ({"token": token.get_secret_value()} if token else {})
