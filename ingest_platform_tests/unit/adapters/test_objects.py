"""One contract for state objects, on a local path and on S3."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingest_platform.adapters.local_objects import storage_error
from ingest_platform.adapters.objects import object_store, prove_conditional_create
from ingest_platform.errors import (
    DiskFullError,
    StorageDeniedError,
    StorageUnavailableError,
    UnsafeStorageError,
)
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.fault_proxy import FaultProxy
from ingest_platform_tests.unit.adapters.conftest import storage_of


def test_missing_object_is_none(objects):
    assert objects.get("a/b.json") is None
    assert objects.list("a") == []
    objects.delete("a/b.json")


def test_put_replaces(objects):
    objects.put("a/b.json", b"old, and longer than the new one")
    objects.put("a/b.json", b"new")
    assert objects.get("a/b.json") == b"new"


def test_create_refuses_an_existing_object_and_leaves_it(objects):
    assert objects.create("a/b.json", b"first")
    assert not objects.create("a/b.json", b"second")
    assert objects.get("a/b.json") == b"first"


def test_create_after_delete(objects):
    assert objects.create("k", b"1")
    objects.delete("k")
    assert objects.create("k", b"2")


def test_the_same_bytes_of_another_writer_are_not_ones_own(objects):
    """Two drivers may write equal leases; only one of them may believe that it won."""
    assert objects.create("k", b"same")
    assert not objects.create("k", b"same")


def test_list_is_sorted_relative_and_stays_in_the_folder(objects):
    for key in ("x/2.json", "x/10/deep.json", "x/1.json", "xy/other.json"):
        objects.put(key, b"{}")
    assert objects.list("x") == ["x/1.json", "x/10/deep.json", "x/2.json"]
    assert objects.list("x/") == objects.list("x")
    assert len(objects.list("")) == 4


@pytest.mark.parametrize("key", ["", "../out", "a/../b", "a//b", "."])
def test_keys_stay_below_the_root(objects, key):
    for call in (objects.get, objects.delete):
        with pytest.raises(ValueError, match="relative key"):
            call(key)


def test_race_has_one_winner_whose_bytes_are_whole(objects):
    """Commit safety and leases rest on this: eight racers, one winner, nothing torn."""
    with ThreadPoolExecutor(8) as pool:
        for round_ in range(15):
            key, bodies = f"race/{round_}", [bytes([65 + i]) * 20_000 for i in range(8)]
            won = list(pool.map(lambda body, key=key: objects.create(key, body), bodies))
            assert sum(won) == 1
            assert objects.get(key) == bodies[won.index(True)]


def test_readers_never_see_a_torn_replacement(objects):
    bodies = {bytes([65 + i]) * 50_000 for i in range(4)}
    objects.put("doc", next(iter(bodies)))
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(objects.put, "doc", body) for body in list(bodies) * 5]
        while not all(w.done() for w in writes):
            assert objects.get("doc") in bodies
        for write in writes:
            write.result()


def test_conditional_creation_is_proved(objects):
    prove_conditional_create(objects)
    assert objects.list("probe") == []


def test_store_without_conditional_creation_is_refused(tmp_path):
    """A server that ignores If-None-Match answers 200 to everyone; here, a store that does so."""

    class Overwriting:
        def __init__(self):
            self._real = object_store(str(tmp_path), StorageEnvironment())
            self.root, self.get, self.put = self._real.root, self._real.get, self._real.put
            self.list, self.delete = self._real.list, self._real.delete

        def create(self, key, data):
            self.put(key, data)
            return True

    with pytest.raises(UnsafeStorageError, match="two writers create one object"):
        prove_conditional_create(Overwriting())


def test_lost_response_to_ones_own_creation_is_a_success(s3):
    """Fault 6: the write landed, its answer did not; repeating it must not look like a defeat."""
    with FaultProxy(s3.endpoint) as proxy:
        objects = object_store(f"s3a://{s3.bucket}/lost", storage_of(s3, proxy.endpoint))
        lost = proxy.drop_response(method="PUT", path=r"/lost/k", times=1)
        assert objects.create("k", b"mine")
        assert lost.hits == 1
        assert not objects.create("k", b"mine")


def test_lost_response_does_not_hide_anothers_creation(s3):
    direct = object_store(f"s3a://{s3.bucket}/lost", storage_of(s3))
    assert direct.create("k", b"theirs")
    with FaultProxy(s3.endpoint) as proxy:
        objects = object_store(f"s3a://{s3.bucket}/lost", storage_of(s3, proxy.endpoint))
        proxy.drop_response(method="PUT", path=r"/lost/k", times=1)
        assert not objects.create("k", b"mine")
    assert direct.get("k") == b"theirs"


def test_one_503_is_ridden_out_and_endless_ones_are_retryable(s3):
    with FaultProxy(s3.endpoint) as proxy:
        objects = object_store(f"s3a://{s3.bucket}/busy", storage_of(s3, proxy.endpoint))
        proxy.answer(503, method="PUT", path=r".*", times=1)
        objects.put("k", b"1")
        proxy.answer(503, path=r".*")
        with pytest.raises(StorageUnavailableError, match="try later"):
            objects.get("k")


def test_s3_that_is_not_there_is_retryable():
    storage = StorageEnvironment.model_validate(
        {"endpoint_url": "http://127.0.0.1:9", "access_key_id": "a", "secret_access_key": "b"}
    )
    with pytest.raises(StorageUnavailableError) as caught:
        object_store("s3a://lake/state", storage).get("k")
    assert caught.value.retryable
    assert caught.value.where == "s3a://lake/state/k"


def test_missing_bucket_and_wrong_secret_are_denied(s3):
    for root, storage in (
        ("s3a://no-such-bucket/x", storage_of(s3)),
        (f"s3a://{s3.bucket}/x", storage_of(s3).model_copy(update={"access_key_id": "nobody"})),
    ):
        with pytest.raises(StorageDeniedError) as caught:
            object_store(root, storage).put("k", b"")
        assert s3.secret_key not in str(caught.value)


def test_path_below_a_file_is_denied(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageDeniedError, match="may not be used"):
        object_store(f"{tmp_path}/file/state", StorageEnvironment()).put("k", b"")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder_is_denied(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageDeniedError):
        object_store(f"{tmp_path}/state", StorageEnvironment()).put("k", b"")


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DiskFullError),
        (errno.EDQUOT, DiskFullError),
        (errno.EROFS, StorageDeniedError),
        (errno.ESTALE, StorageUnavailableError),
    ],
)
def test_os_errors_find_their_place_in_the_tree(number, kind):
    """Full disks and read-only mounts need root; the fault suite makes real ones."""
    error = storage_error(OSError(number, os.strerror(number)), Path("/lake/state"))
    assert type(error) is kind
    assert error.where == "/lake/state"


def test_crash_leftovers_are_no_objects(tmp_path):
    store = object_store(str(tmp_path), StorageEnvironment())
    store.put("a/b", b"1")
    Path(tmp_path, "a", ".tmp-0123").write_bytes(b"torn")
    assert store.list("a") == ["a/b"]
    assert {p.name for p in Path(tmp_path, "a").iterdir()} == {"b", ".tmp-0123"}
