"""Storage of a table: the same contract on disk and on S3."""

from __future__ import annotations

import boto3
import pytest

from ingest_platform.adapters.table_storage import Pace, table_storage
from ingest_platform.spec import StorageEnvironment

NAMES = ["a.parquet", "p=x y/b.parquet", "p=50%25/c.parquet", "p=ü/d.parquet", "_change_data/e"]
HIDDEN = ["_delta_log/0.json", "p=x y/_temporary/f", ".tmp/g", "_state/offsets"]


@pytest.fixture(params=["local", "s3"])
def storage(request, tmp_path):
    """A table with files of all kinds, and the path that Spark would name them by."""
    if request.param == "local":
        for name in (*NAMES, *HIDDEN):
            file = tmp_path / "t" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"12345")
        path, root = str(tmp_path / "t"), f"file:{tmp_path}/t"
        return table_storage(path, StorageEnvironment(), per_second=1000), root
    s3 = request.getfixturevalue("s3")
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
        region_name=s3.region,
    )
    for name in (*NAMES, *HIDDEN):
        client.put_object(Bucket=s3.bucket, Key=f"lake/t/{name}", Body=b"12345")
    client.put_object(Bucket=s3.bucket, Key="lake/t2/other", Body=b"1")
    client.close()
    found = StorageEnvironment.from_env(s3.environment())
    path = f"s3a://{s3.bucket}/lake/t"
    return table_storage(path, found, per_second=1000), path


def test_data_files_are_listed_and_the_log_is_not(storage):
    files, root = storage
    found = {f.path: f.bytes for f in files.files() if not f.folder}
    assert found == {f"{root}/{name}": 5 for name in NAMES}


def test_sizes_of_some_files(storage):
    files, root = storage
    wanted = [f"{root}/{NAMES[1]}", f"{root}/{NAMES[2]}", f"{root}/gone"]
    assert files.sizes(wanted) == {wanted[0]: 5, wanted[1]: 5}


def test_removed_files_are_gone_and_missing_ones_no_error(storage):
    """A vacuum that was killed is repeated with some files already gone."""
    files, root = storage
    victims = [f"{root}/{NAMES[1]}", f"{root}/{NAMES[3]}", f"{root}/gone"]
    assert files.remove(victims) == 3
    assert files.remove(victims) == 3
    left = {f.path for f in files.files() if not f.folder}
    assert left == {f"{root}/{name}" for name in (NAMES[0], NAMES[2], NAMES[4])}


def test_the_pace_is_kept():
    waits, now = [], [0.0]

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    pace = Pace(500, clock=lambda: now[0], sleep=sleep)
    for _ in range(5):
        pace.take(pace.batch())
    assert sum(waits) == pytest.approx(4.0)
    assert pace.batch() == 500
