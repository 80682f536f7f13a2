"""How long compaction waits for announced DML: on a real store, with the clock in hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest_platform import dml_in_flight
from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.maintain.auto_compaction.markers import Marker, markers_folder
from ingest_platform.maintain.compaction.announced_dml import AnnouncedDml, DmlInFlightError


@dataclass
class Clock:
    """Sleeping is all that takes time; `beat` is what else happens meanwhile."""

    now: float = 0.0
    beat: object = None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if callable(self.beat):
            self.beat(self.now)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(tmp_path / "orders")


@pytest.fixture
def objects(tmp_path: Path) -> LocalObjects:
    return LocalObjects(tmp_path / "_ingest")


def announced(objects: LocalObjects, table: str, clock: Clock) -> AnnouncedDml:
    return AnnouncedDml(objects, table, clock=clock, sleep=clock.sleep)


def test_nothing_announced_costs_no_time(objects: LocalObjects, table: str) -> None:
    announced(objects, table, clock := Clock()).wait()
    assert clock.now == 0


def test_the_batch_goes_on_when_the_dml_is_over(objects: LocalObjects, table: str) -> None:
    clock = Clock()
    block = dml_in_flight(table)
    block.__enter__()
    clock.beat = lambda now: block.__exit__(None, None, None) if now == 30 else None
    announced(objects, table, clock).wait()
    assert clock.now == 30


def test_a_marker_of_a_killed_process_is_outwaited(objects: LocalObjects, table: str) -> None:
    """Whatever its time to live: else each run would give up on it, for ever."""
    for ttl in (60.0, 600.0):
        objects.put(f"{markers_folder(table)}/x.json", Marker("h:1", 0, ttl).to_json().encode())
        clock = Clock()
        announced(objects, table, clock).wait()
        assert ttl < clock.now <= 1.25 * ttl
        assert objects.list(markers_folder(table)) == []


def test_dml_without_end_costs_a_run_two_minutes_in_all(objects: LocalObjects, table: str) -> None:
    """Not two minutes for each batch."""
    key = f"{markers_folder(table)}/x.json"

    def renewed(now: float) -> None:
        objects.put(key, Marker("h:1", int(now), 60.0).to_json().encode())

    renewed(0)
    clock = Clock(beat=renewed)
    dml = announced(objects, table, clock)
    with pytest.raises(DmlInFlightError, match="DML in flight: h:1"):
        dml.wait()
    assert clock.now <= 124
    spent = clock.now
    with pytest.raises(DmlInFlightError):
        dml.wait()
    assert clock.now == spent
