"""The two real stores that every store test runs against."""

from __future__ import annotations

import uuid

import pytest

from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.spec import StorageEnvironment


def storage_of(s3, endpoint: str | None = None) -> StorageEnvironment:
    """The environment that reaches the embedded S3, or a proxy in front of it."""
    return StorageEnvironment.from_env(s3.environment(endpoint))


@pytest.fixture(params=["local", "s3"])
def objects(request, tmp_path) -> ObjectStore:
    """An empty store, once on a local path and once on S3."""
    if request.param == "local":
        return object_store(str(tmp_path / "state"), StorageEnvironment())
    s3 = request.getfixturevalue("s3")
    return object_store(f"s3a://{s3.bucket}/objects/{uuid.uuid4()}", storage_of(s3))
