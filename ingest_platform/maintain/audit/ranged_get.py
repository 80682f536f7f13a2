"""Small GETs from S3 at a fraction of boto3's cost, outside of Python's lock.

boto3 spends 1.4 ms of CPU on a `get_object` (validation, endpoint rules, events, parsing);
for the 100,000 commits of a long log that is minutes of one core. obstore (the object store library
of delta-rs and Arrow) takes a quarter of that, in threads of its own. What does not go smoothly is
left to boto3, which knows redirects, retries and what errors mean.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import obstore
from botocore.exceptions import BotoCoreError
from obstore.exceptions import BaseError
from obstore.store import S3Store

from ingest_platform.spec.environment import StorageEnvironment

_NO_RETRIES: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=10)}
_ANY_KEY = "k"


class RangedGets:
    """Reads the beginnings of objects of one bucket; safe to use from many threads.

    Args:
        client: A boto3 client, which decides how the bucket is addressed.
        storage: Credentials and region; the SDK's own chain (role, profile) without any.
        bucket: The bucket.
    """

    def __init__(self, client: Any, storage: StorageEnvironment, bucket: str) -> None:
        try:
            # Signing is what finds credentials; without any, boto3 says so better than we could.
            url = client.generate_presigned_url("get_object", {"Bucket": bucket, "Key": _ANY_KEY})
        except BotoCoreError:
            self._store = None
        else:
            self._store = _store(url, storage, bucket)

    def read(self, key: str, limit: int) -> bytes | None:
        """An object's first `limit` bytes; None when boto3 had better be asked."""
        if self._store is None:
            return None
        try:
            return bytes(obstore.get_range(self._store, key, start=0, end=limit))
        except (BaseError, OSError):  # a missing object is a FileNotFoundError
            return None


def _store(example: str, storage: StorageEnvironment, bucket: str) -> S3Store:
    """The bucket, addressed as boto3 does in the `example`."""
    url = urlsplit(example)
    return S3Store(
        bucket,
        endpoint=f"{url.scheme}://{url.netloc}",
        virtual_hosted_style_request=url.path != f"/{bucket}/{_ANY_KEY}",
        region=storage.region,
        client_options={
            "allow_http": url.scheme == "http",
            "connect_timeout": "2s",
            "timeout": "10s",
        },
        retry_config=_NO_RETRIES,
        **_credentials(storage),
    )


def _credentials(storage: StorageEnvironment) -> dict[str, Any]:
    secret, token = storage.secret_access_key, storage.session_token
    if not (storage.access_key_id and secret):
        # Not part of obstore's own import: it brings in boto3's session.
        from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415

        return {"credential_provider": Boto3CredentialProvider()}
    found = {
        "access_key_id": storage.access_key_id,
        "secret_access_key": secret.get_secret_value(),
    }
    return found | ({"token": token.get_secret_value()} if token else {})
