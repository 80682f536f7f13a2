"""One maintenance run per table at a time, whoever started it: schedule, UI or command line."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.drivers.compact_table import compact_table
from ingest_platform.drivers.vacuum_table import VacuumOptions, vacuum_table
from ingest_platform.maintain.turn import Turns
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.lake_tables import LakeTable, table_spec

TTL = 0.8


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return object_store(str(tmp_path / "_ingest"), StorageEnvironment())


def dead_run(objects: ObjectStore) -> None:
    """A run that was killed in its turn."""
    LeaseStore(objects, "clicks/maintenance").take("gone:1", "stream", datetime.now(UTC))


def test_a_turn_that_is_over_is_free_at_once(objects: ObjectStore) -> None:
    started = time.monotonic()
    for _ in range(3):
        with Turns(objects, "clicks").turn() as other:
            assert other is None
    assert time.monotonic() - started < 2


def test_whoever_comes_meanwhile_is_told_who_has_it(objects: ObjectStore) -> None:
    with Turns(objects, "clicks", ttl=TTL).turn() as mine:
        assert mine is None
        with Turns(objects, "clicks", ttl=TTL).turn() as other:
            assert other is not None
            assert other.holder.partition(":")[2].isdigit()
        with Turns(objects, "orders", ttl=TTL).turn() as another_table:
            assert another_table is None


def test_a_dead_run_is_succeeded_by_one_of_those_who_wait(objects: ObjectStore) -> None:
    """However many find it dead at the same moment; nobody works before its beat stood still."""
    dead_run(objects)
    started, at_work, most = time.monotonic(), 0, 0
    lock, all_asked = threading.Lock(), threading.Barrier(6)

    def come() -> bool:
        nonlocal at_work, most
        with Turns(objects, "clicks", ttl=TTL).turn() as other:
            assert time.monotonic() - started > TTL
            with lock:
                at_work += other is None
                most = max(most, at_work)
            all_asked.wait(30)
            with lock:
                at_work -= other is None
            return other is None

    with ThreadPoolExecutor(6) as pool:
        had_it = [future.result(60) for future in [pool.submit(come) for _ in range(6)]]
    assert sum(had_it) == 1
    assert most == 1


def test_a_table_that_another_run_maintains_is_left_to_it(tmp_path: Path) -> None:
    """Said in the report; no JVM is started for it, and a dry run looks all the same."""

    def no_session() -> None:
        raise AssertionError("Spark was asked for")

    table = LakeTable(str(tmp_path / "t"))
    for n in range(3):
        table.append([n])
    spec, now = table_spec(table.path), datetime.now(UTC)
    state = object_store(spec.root, table.storage)
    with Turns(state, spec.name, ttl=TTL).turn():
        compaction = compact_table(spec, table.storage, no_session, now, dry_run=False)
        dry = compact_table(spec, table.storage, no_session, now, dry_run=True)
        vacuum = vacuum_table(spec, table.storage, no_session, now, VacuumOptions(full=True))
    assert compaction.done.startswith("left alone: the maintenance run ")
    assert vacuum.done.startswith("left alone: the maintenance run ")
    assert compaction.numbers["files_after"] == 3
    assert compaction.numbers["commits"] == vacuum.numbers["files_found"] == 0
    assert dry.done.startswith("to compact: 3 files")
    assert compaction.error is vacuum.error is None
