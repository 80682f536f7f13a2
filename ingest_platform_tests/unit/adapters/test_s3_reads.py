"""The short way to S3: the same bytes as boto3 gives, and boto3 for everything unusual."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.s3_objects import s3_client
from ingest_platform.adapters.s3_reads import NotSmoothError, S3Reads
from ingest_platform.errors import StorageDeniedError
from ingest_platform.maintain.audit.log_folder import S3LogFolder
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.fault_proxy import FaultProxy


@pytest.fixture
def client(s3):
    return s3_client(StorageEnvironment.from_env(s3.environment()))


def reads(s3, bucket: str | None = None, **changes: str) -> S3Reads:
    storage = StorageEnvironment.from_env({**s3.environment(), **changes})
    return S3Reads(storage, bucket or s3.bucket)


@pytest.mark.parametrize("key", ["a/_delta_log/0.json", "with space/ü+&=(1)~.json"])
def test_an_object_and_its_beginning(s3, client, key):
    client.put_object(Bucket=s3.bucket, Key=key, Body=b"0123456789")
    assert reads(s3).head(key, 4) == b"0123"
    assert reads(s3).head(key, 100) == b"0123456789"
    assert reads(s3).get(key) == b"0123456789"


def test_what_is_in_a_folder(s3, client):
    for name in ("1.crc", "1.json", "2.json", "3.json", "_sidecars/4.parquet"):
        client.put_object(Bucket=s3.bucket, Key=f"a b/log/{name}", Body=b"xy")
    found = reads(s3).listed("a b/log")
    assert sorted(item.name for item in found) == ["1.crc", "1.json", "2.json", "3.json"]
    assert {item.size for item in found} == {2}
    assert all(abs(item.modified - datetime.now(UTC)) < timedelta(minutes=5) for item in found)
    assert sorted(item.name for item in reads(s3).listed("a b/log", "2")) == ["2.json", "3.json"]
    assert reads(s3).listed("a b/log", "4") == []


def test_only_an_object_that_is_missing_is_none(s3, client):
    """A missing bucket, a refused signature, a server that does not answer are left to boto3."""
    client.put_object(Bucket=s3.bucket, Key="k", Body=b"x")
    assert reads(s3).head("missing", 4) is None
    assert reads(s3).get("missing") is None
    for unfit in (reads(s3, AWS_SECRET_ACCESS_KEY="wrong-secret"), reads(s3, "no-such-bucket")):
        with pytest.raises(NotSmoothError):
            unfit.head("k", 4)
        with pytest.raises(NotSmoothError):
            unfit.get("k")
    with FaultProxy(s3.endpoint) as proxy:
        through = reads(s3, AWS_ENDPOINT_URL=proxy.endpoint)
        assert through.get("k") == b"x"
        proxy.answer(503, path=r".*")
        with pytest.raises(NotSmoothError):
            through.get("k")


def test_the_log_folder_reads_on_through_a_busy_server(s3, client):
    """Fault 18: a 503 goes to boto3, which repeats the request."""
    key = "t/_delta_log/0.json"
    client.put_object(Bucket=s3.bucket, Key=key, Body=b"content")
    with FaultProxy(s3.endpoint) as proxy:
        storage = StorageEnvironment.from_env(s3.environment(proxy.endpoint))
        folder = S3LogFolder(f"s3a://{s3.bucket}/t", storage)
        busy = proxy.answer(503, method="GET", path=r".*", times=2)
        assert folder.read("0.json", 4) == b"cont"
        assert busy.hits == 2
        assert folder.read("1.json", 4) is None


def test_an_empty_object(s3, client):
    """It has no first byte: the server answers 416 to a range."""
    client.put_object(Bucket=s3.bucket, Key="t/_delta_log/0.json", Body=b"")
    storage = StorageEnvironment.from_env(s3.environment())
    folder = S3LogFolder(f"s3a://{s3.bucket}/t", storage)
    assert folder.read("0.json", 4) == b""


def test_denied_access_is_an_error_of_the_tree(s3):
    environ = {**s3.environment(), "AWS_SECRET_ACCESS_KEY": "wrong-secret"}
    folder = S3LogFolder(f"s3a://{s3.bucket}/t", StorageEnvironment.from_env(environ))
    with pytest.raises(StorageDeniedError):
        list(folder.entries())
    with pytest.raises(StorageDeniedError):
        folder.read("0.json", 4)


def test_a_missing_bucket_is_no_missing_object(s3):
    """A mistyped path must not look like a stream that was never started."""
    storage = StorageEnvironment.from_env(s3.environment())
    with pytest.raises(StorageDeniedError, match="the bucket does not exist"):
        object_store("s3a://no-such-bucket/state", storage).get("status.json")


def test_reading_state_does_not_import_boto3(s3, client):
    """Half a second, of the second that `status` has."""
    client.put_object(Bucket=s3.bucket, Key="state/a/b.json", Body=b"x")
    code = (
        "import os, sys\n"
        "from ingest_platform.adapters.objects import object_store\n"
        "from ingest_platform.spec import StorageEnvironment\n"
        "storage = StorageEnvironment.from_env(os.environ)\n"
        f"store = object_store('s3a://{s3.bucket}/state', storage)\n"
        "assert store.get('a/b.json') == b'x' and store.get('a/c.json') is None\n"
        "sys.exit('boto3' in sys.modules or 'botocore' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=s3.environment(), check=False)
    assert done.returncode == 0
