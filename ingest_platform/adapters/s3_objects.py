"""State objects on S3, by conditional writes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from ingest_platform.adapters.s3_reads import checked_key
from ingest_platform.errors import IngestError, StorageDeniedError, StorageUnavailableError
from ingest_platform.spec.environment import StorageEnvironment

_WRITE_ID = "ingest-write-id"
_MISSING = {"404", "NoSuchKey"}
_EXISTS = {"412", "PreconditionFailed"}
_CONFLICT = {"409", "ConditionalRequestConflict"}  # a racing write was under way: ask again
_CONFLICT_TRIES = 5


@lru_cache(maxsize=16)
def s3_client(storage: StorageEnvironment, *, read_timeout: float = 5) -> Any:
    """A boto3 client with bounded waits: some 20 s at most until an answer or an error.

    Requests about many objects, such as their deletion, need a longer `read_timeout` (seconds).

    Cached, because making one costs 50 ms and some megabytes, and 200 sensors share a process;
    clients are thread-safe.
    """
    secret, token = storage.secret_access_key, storage.session_token
    return Session().client(
        "s3",
        endpoint_url=storage.endpoint_url,
        region_name=storage.region,
        aws_access_key_id=storage.access_key_id,
        aws_secret_access_key=secret.get_secret_value() if secret else None,
        aws_session_token=token.get_secret_value() if token else None,
        config=Config(
            connect_timeout=2,
            read_timeout=read_timeout,
            retries={"mode": "standard", "total_max_attempts": 3},
            max_pool_connections=20,
            s3={"addressing_style": "path" if storage.path_style else "auto"},
            # The newer default sends checksum trailers, which several S3-compatible servers refuse.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


class S3Objects:
    """An `ObjectStore` below `s3a://bucket/prefix`."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""

    @property
    def root(self) -> str:
        """The prefix that keys are relative to."""
        return f"s3a://{self._bucket}/{self._prefix}".rstrip("/")

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None."""
        with self._errors_of(key):
            try:
                return self._client.get_object(**self._at(key))["Body"].read()
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise

    def put(self, key: str, data: bytes) -> None:
        """Write or replace; a PUT of S3 is atomic."""
        with self._errors_of(key):
            self._client.put_object(**self._at(key), Body=data)

    def create(self, key: str, data: bytes) -> bool:
        """PUT with `If-None-Match: *`.

        A write id in the object's metadata tells one's own write, whose response was lost before
        botocore repeated it, from another writer's with the same bytes.
        """
        write_id = uuid.uuid4().hex
        with self._errors_of(key):
            for _ in range(_CONFLICT_TRIES):
                try:
                    self._client.put_object(
                        **self._at(key), Body=data, IfNoneMatch="*", Metadata={_WRITE_ID: write_id}
                    )
                except ClientError as error:
                    if _code(error) in _EXISTS:
                        return self._write_id(key) == write_id
                    if _code(error) not in _CONFLICT:
                        raise
                else:
                    return True
        raise _unavailable(f"{_CONFLICT_TRIES} conditional writes in turn collided", self._url(key))

    def list(self, prefix: str) -> list[str]:
        """Keys below a folder, sorted."""
        folder = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        with self._errors_of(folder):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=f"{self._prefix}{folder}"
            )
            found = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return sorted(key.removeprefix(self._prefix) for key in found if not key.endswith("/"))

    def delete(self, key: str) -> None:
        """Remove the object, if there is one."""
        with self._errors_of(key):
            self._client.delete_object(**self._at(key))

    def _write_id(self, key: str) -> str | None:
        head = self._client.head_object(**self._at(key))
        return head.get("Metadata", {}).get(_WRITE_ID)

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}{checked_key(key)}"}

    def _url(self, key: str) -> str:
        return f"s3a://{self._bucket}/{self._prefix}{key}"

    @contextmanager
    def _errors_of(self, key: str) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise s3_error(error, self._url(key)) from error


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def s3_error(error: ClientError | BotoCoreError, where: str) -> IngestError:
    """The error tree's word for a boto error; messages of boto hold no secrets."""
    if isinstance(error, NoCredentialsError | NoRegionError):
        return StorageDeniedError(
            "no S3 credentials were found",
            where=where,
            remedy="export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role",
        )
    if not isinstance(error, ClientError):
        return _unavailable(f"S3 did not answer: {error}", where)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = _code(error)
    if code == "NoSuchBucket":
        return StorageDeniedError(
            "the bucket does not exist", where=where, remedy="create it, or mend the spec's path"
        )
    if code == "RequestTimeTooSkewed":
        return StorageDeniedError(
            "S3 refused the request: this machine's clock is wrong",
            where=where,
            remedy="synchronise the clock (NTP)",
        )
    if status in {429, 503} or status >= 500 or not status:
        return _unavailable(f"S3 asked to try later ({code or status})", where)
    return StorageDeniedError(
        f"S3 refused the request ({code or status})",
        where=where,
        remedy="check the credentials, their policy (Get, Put, List, Delete) and the bucket",
    )


def _unavailable(what: str, where: str) -> StorageUnavailableError:
    return StorageUnavailableError(
        what, where=where, remedy="check AWS_ENDPOINT_URL_S3 and the service; it is tried again"
    )
