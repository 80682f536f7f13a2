"""Leases under real races of threads and processes."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.model.lease import Lease
from ingest_platform.spec import StorageEnvironment

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_no_lease_before_the_first_driver(objects):
    assert LeaseStore(objects, "clicks").current() is None


def test_each_taking_counts_up_and_supersedes(objects):
    store = LeaseStore(objects, "clicks")
    first = store.take("a:1", "stream", NOW)
    assert first == Lease(1, "a:1", "2026-01-31T12:00:00+00:00", "stream")
    assert store.current() == first
    assert not store.superseded(first)
    second = store.take("b:2", "repair", NOW)
    assert second.generation == 2
    assert store.superseded(first)
    assert not store.superseded(second)


def test_clocks_decide_nothing(objects):
    """Fault 28: a host whose clock is an hour behind takes over all the same."""
    store = LeaseStore(objects, "clicks")
    store.take("a:1", "stream", NOW)
    late = store.take("b:2", "stream", NOW.replace(hour=11))
    assert store.current() == late


def test_streams_do_not_share_leases(objects):
    clicks = LeaseStore(objects, "clicks").take("a:1", "stream", NOW)
    other = LeaseStore(objects, "clicks2")
    other.take("b:2", "stream", NOW)
    other.take("b:3", "stream", NOW)
    assert not LeaseStore(objects, "clicks").superseded(clicks)


def test_old_generations_are_pruned_and_stay_superseded(objects):
    store = LeaseStore(objects, "clicks")
    leases = [store.take("a:1", "stream", NOW) for _ in range(25)]
    assert len(objects.list("streams/clicks/lease")) == 10
    assert all(store.superseded(lease) for lease in leases[:-1])
    assert not store.superseded(leases[-1])


def test_slow_taker_that_recreates_a_pruned_generation_holds_nothing(objects):
    store = LeaseStore(objects, "clicks")
    for _ in range(25):
        newest = store.take("a:1", "stream", NOW)
    stale = Lease(3, "slow:9", NOW.isoformat(), "stream")
    assert objects.create("streams/clicks/lease/0000000003.json", stale.to_json().encode())
    assert store.superseded(stale)
    assert not store.superseded(newest)
    assert store.current() == newest


def test_lease_is_lost_when_the_state_was_removed(objects):
    store = LeaseStore(objects, "clicks")
    lease = store.take("a:1", "stream", NOW)
    objects.delete("streams/clicks/lease/0000000001.json")
    assert store.superseded(lease)


def test_foreign_files_are_passed_over(objects):
    objects.put("streams/clicks/lease/README.txt", b"hello")
    assert LeaseStore(objects, "clicks").take("a:1", "stream", NOW).generation == 1


def test_racing_threads_each_get_their_own_generation(objects):
    store = LeaseStore(objects, "clicks")
    with ThreadPoolExecutor(8) as pool:
        leases = list(pool.map(lambda i: store.take(f"t:{i}", "stream", NOW), range(24)))
    assert sorted(lease.generation for lease in leases) == list(range(1, 25))
    assert [lease for lease in leases if not store.superseded(lease)] == [store.current()]


_TAKE = """
import sys
from datetime import UTC, datetime
from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.spec import StorageEnvironment
store = LeaseStore(object_store(sys.argv[1], StorageEnvironment()), "clicks")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    print(store.take(sys.argv[2], "stream", datetime.now(UTC)).generation)
"""


@pytest.mark.slow
def test_racing_processes_each_get_their_own_generations(tmp_path):
    """Fault 4: drivers are processes, on one host or many; threads share too much to stand in."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _TAKE, str(tmp_path), f"racer:{i}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(4)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [int(line) for racer in racers for line in racer.communicate(timeout=60)[0].split()]
    assert sorted(won) == list(range(1, 81))
    current = LeaseStore(object_store(str(tmp_path), StorageEnvironment()), "clicks").current()
    assert current is not None
    assert current.generation == 80


def test_successor_takes_over_from_its_predecessor_and_from_no_other(objects):
    """Two that waited for one generation: one writes, the other is told that it came late."""
    store = LeaseStore(objects, "clicks")
    store.take("a:1", "stream", NOW)
    assert not store.vacated(1)
    store.vacate(1, "its driver", NOW)
    assert store.vacated(1)
    assert store.take_after(1, "b:2", NOW) == Lease(2, "b:2", "2026-01-31T12:00:00+00:00")
    assert store.take_after(1, "c:3", NOW) is None
    assert store.take_after(3, "c:3", NOW) is None
    assert not store.vacated(2)
    current = store.current()
    assert current is not None
    assert current.holder == "b:2"


def test_successors_race_for_one_generation(objects):
    store = LeaseStore(objects, "clicks")
    store.take("a:1", "stream", NOW)
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda i: store.take_after(1, f"h:{i}", NOW), range(8)))
    assert sum(lease is not None for lease in taken) == 1


def test_leaving_a_lease_does_not_take_it_away(objects):
    """Said in error, of a driver that only seems dead, it must not stop that driver."""
    store = LeaseStore(objects, "clicks")
    first = store.take("a:1", "stream", NOW)
    store.vacate(1, "ann", NOW)
    assert not store.superseded(first)
    for _ in range(12):
        store.vacate(store.take("a:1", "stream", NOW).generation, "its driver", NOW)
    kept = [key for key in objects.list("streams/clicks/lease") if key.endswith(".vacated")]
    assert len(kept) == 10
