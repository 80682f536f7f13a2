"""Reading a real Delta log, on a local path and on S3."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from ingest_platform.adapters.delta_tables import options_for
from ingest_platform.adapters.table_log import TableLog, table_log
from ingest_platform.errors import StorageDeniedError, StorageUnavailableError
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange, OffsetRanges
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.unit.adapters.conftest import storage_of


def ledger(batch: int) -> Ledger:
    """A batch of two records."""
    offsets = OffsetRanges((OffsetRange("clicks", 0, batch * 2, batch * 2 + 2),))
    return Ledger("clicks", "5f0c", batch, offsets, read=2, written=2)


def commit(path: str, storage: StorageEnvironment, metadata: str | None) -> None:
    """Append two rows, with `metadata` as the commit's userMetadata, as Spark writes it."""
    write_deltalake(
        path,
        pa.table({"id": [1, 2]}),
        mode="append",
        storage_options=options_for(path, storage),
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": metadata} if metadata else None
        ),
    )


@pytest.fixture(params=["local", "s3"])
def place(request, tmp_path) -> tuple[str, StorageEnvironment]:
    """Path and storage for a new table, once local and once on S3."""
    if request.param == "local":
        return str(tmp_path / "clicks"), StorageEnvironment()
    s3 = request.getfixturevalue("s3")
    return f"s3a://{s3.bucket}/tables/{uuid.uuid4()}", storage_of(s3)


def test_no_table_yet(place):
    log = TableLog(*place)
    assert log.version() is None
    assert log.commits(after=-1) == []
    assert log.size() is None


def test_commits_since_a_version_with_their_ledgers(place):
    log = TableLog(*place)
    for batch in range(3):
        commit(*place, ledger(batch).to_user_metadata())
    assert log.version() == 2
    assert [c.ledger for c in log.commits(after=0)] == [ledger(1), ledger(2)]
    commit(*place, "someone's own note")
    commit(*place, '{"ingest": {"v": 99}}')
    assert [(c.version, c.ledger) for c in log.commits(after=2)] == [(3, None), (4, None)]
    assert log.commits(after=4) == []
    assert [c.version for c in log.commits(after=-1, limit=2)] == [3, 4]


def test_commits_back_to_one_from_before_a_moment(tmp_path, monkeypatch):
    """No more of a long log is read than it takes."""
    monkeypatch.setattr("ingest_platform.adapters.table_log._STRIDES", (2, 4))
    path, storage = str(tmp_path / "clicks"), StorageEnvironment()
    log = TableLog(path, storage)
    assert log.commits_around(0) == []
    for batch in range(6):
        commit(path, storage, ledger(batch).to_user_metadata())
    log.version()
    times = [c.timestamp_ms for c in log.commits(-1)]

    def around(moment_ms: int) -> list[int]:
        return [c.version for c in log.commits_around(moment_ms)]

    assert around(times[5] + 1) == [4, 5]
    assert around(times[2] + 1) == [2, 3, 4, 5]
    assert around(0) == [2, 3, 4, 5], "the most that is read"


def test_size_counts_live_files(place):
    log = TableLog(*place)
    for batch in range(3):
        commit(*place, ledger(batch).to_user_metadata())
    size = log.size()
    assert size is not None
    assert (size.version, size.files) == (2, 3)
    path, storage = place
    options = options_for(path, storage)
    DeltaTable(path, storage_options=options).optimize.compact()
    compacted = log.size()
    assert compacted is not None
    assert compacted.files == 1
    assert 0 < compacted.bytes < size.bytes


def test_spark_counts_come_as_text(tmp_path):
    """Spark writes operationMetrics as strings; the reader must not care."""
    path = str(tmp_path / "t")
    commit(path, StorageEnvironment(), None)
    entry = Path(path, "_delta_log", f"{0:020d}.json")
    entry.write_text(entry.read_text().replace('"num_added_files":1', '"numFiles":"7"'))
    assert TableLog(path, StorageEnvironment()).commits(after=-1)[0].metrics["numFiles"] == 7


def test_table_that_was_made_anew_is_read_after_forgetting(tmp_path):
    """`make clean-demo`, or a person's DROP, while the code server keeps its snapshot."""
    path = str(tmp_path / "t")
    log = TableLog(path, StorageEnvironment())
    for batch in range(3):
        commit(path, StorageEnvironment(), ledger(batch).to_user_metadata())
    assert log.version() == 2
    shutil.rmtree(path)
    log.forget()
    assert log.version() is None
    commit(path, StorageEnvironment(), ledger(0).to_user_metadata())
    assert log.version() == 0


def test_log_is_shared_per_path():
    storage = StorageEnvironment()
    assert table_log("/lake/a", storage) is table_log("/lake/a", StorageEnvironment())
    assert table_log("/lake/a", storage) is not table_log("/lake/b", storage)


def test_s3_that_does_not_answer_is_retryable_and_readable():
    storage = StorageEnvironment.model_validate(
        {"endpoint_url": "http://127.0.0.1:9", "access_key_id": "a", "secret_access_key": "b"}
    )
    with pytest.raises(StorageUnavailableError, match="cannot be read") as caught:
        TableLog("s3a://lake/clicks", storage).version()
    assert "\x1b" not in str(caught.value)


def test_wrong_secret_is_denied(s3):
    wrong = storage_of(s3).model_copy(update={"access_key_id": "nobody"})
    with pytest.raises(StorageDeniedError) as caught:
        TableLog(f"s3a://{s3.bucket}/clicks", wrong).version()
    assert s3.secret_key not in str(caught.value)
