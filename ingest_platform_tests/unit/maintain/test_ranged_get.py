"""The short way to S3: the same bytes as boto3 gives, and boto3 for everything unusual."""

from __future__ import annotations

import pytest

from ingest_platform.adapters.s3_objects import s3_client
from ingest_platform.errors import StorageDeniedError
from ingest_platform.maintain.audit.log_folder import S3LogFolder
from ingest_platform.maintain.audit.ranged_get import RangedGets
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.fault_proxy import FaultProxy


@pytest.fixture
def client(s3):
    return s3_client(StorageEnvironment.from_env(s3.environment()))


def gets(s3, client, **changes: str) -> RangedGets:
    storage = StorageEnvironment.from_env({**s3.environment(), **changes})
    return RangedGets(client, storage, s3.bucket)


@pytest.mark.parametrize("key", ["a/_delta_log/0.json", "with space/ü+&=(1)~.json"])
def test_the_beginning_of_an_object(s3, client, key):
    client.put_object(Bucket=s3.bucket, Key=key, Body=b"0123456789")
    assert gets(s3, client).read(key, 4) == b"0123"
    assert gets(s3, client).read(key, 100) == b"0123456789"


def test_everything_unusual_is_left_to_boto3(s3, client):
    """A missing object, a refused signature, a server that does not answer."""
    client.put_object(Bucket=s3.bucket, Key="k", Body=b"x")
    assert gets(s3, client).read("missing", 4) is None
    assert gets(s3, client, AWS_SECRET_ACCESS_KEY="wrong-secret").read("k", 4) is None
    with FaultProxy(s3.endpoint) as proxy:
        through = s3_client(StorageEnvironment.from_env(s3.environment(proxy.endpoint)))
        fast = gets(s3, through)
        assert fast.read("k", 4) == b"x"
        proxy.answer(503, path=r".*")
        assert fast.read("k", 4) is None


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


def test_denied_access_is_an_error_of_the_tree(s3):
    environ = {**s3.environment(), "AWS_SECRET_ACCESS_KEY": "wrong-secret"}
    folder = S3LogFolder(f"s3a://{s3.bucket}/t", StorageEnvironment.from_env(environ))
    with pytest.raises(StorageDeniedError):
        list(folder.entries())
    with pytest.raises(StorageDeniedError):
        folder.read("0.json", 4)
