"""Announced DML, as other drivers see it: on a real store, with the reader's clock in hand."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ingest_platform import dml_in_flight
from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.errors import UserError
from ingest_platform.maintain.auto_compaction.dml_watch import MarkedDml
from ingest_platform.maintain.auto_compaction.in_flight import Listeners
from ingest_platform.maintain.auto_compaction.markers import Marker, MarkerReader, markers_folder


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(tmp_path / "orders")


@pytest.fixture
def objects(tmp_path: Path) -> LocalObjects:
    """The state's default root: `_ingest` beside the table."""
    return LocalObjects(tmp_path / "_ingest")


def test_marker_is_there_inside_the_block_only(table: str, objects: LocalObjects) -> None:
    reader = MarkerReader(objects, table)
    with dml_in_flight(table), dml_in_flight(f"{table}/"):
        assert len(reader.in_flight(0.0)) == 2
    assert reader.in_flight(0.0) == []
    assert objects.list(markers_folder(table)) == []


def test_failing_dml_takes_its_marker_along(table: str, objects: LocalObjects) -> None:
    with pytest.raises(ValueError, match="the MERGE failed"), dml_in_flight(table):
        raise ValueError("the MERGE failed")
    assert MarkerReader(objects, table).in_flight(0.0) == []


def test_marker_goes_below_the_state_path_of_the_spec(table: str, tmp_path: Path) -> None:
    elsewhere = LocalObjects(tmp_path / "state")
    with dml_in_flight(table, state_path=str(tmp_path / "state")):
        assert MarkerReader(elsewhere, table).in_flight(0.0)


def test_abandoned_marker_expires_by_the_readers_clock(table: str, objects: LocalObjects) -> None:
    """A MERGE whose process was killed must not stop compaction for ever."""
    key = f"{markers_folder(table)}/x.json"
    objects.put(key, Marker("host:1", 0, ttl=60.0).to_json().encode())
    reader = MarkerReader(objects, table)
    assert reader.in_flight(1000.0)
    assert reader.in_flight(1060.0)
    assert reader.in_flight(1060.1) == []
    assert objects.get(key) is None


def test_renewed_marker_lives_on(table: str, objects: LocalObjects) -> None:
    key = f"{markers_folder(table)}/x.json"
    reader = MarkerReader(objects, table)
    for beat in range(4):
        objects.put(key, Marker("host:1", beat, ttl=60.0).to_json().encode())
        assert reader.in_flight(50.0 * beat)


def test_process_that_was_suspended_puts_its_marker_back(table: str, objects: LocalObjects) -> None:
    with dml_in_flight(table, ttl=0.2):
        for key in objects.list(markers_folder(table)):
            objects.delete(key)
        reader = MarkerReader(objects, table)
        renewed = threading.Event()
        for _ in range(200):
            if reader.in_flight(0.0):
                break
            renewed.wait(0.01)
        assert reader.in_flight(0.0)


def test_unreadable_marker_counts_until_it_expires(table: str, objects: LocalObjects) -> None:
    objects.put(f"{markers_folder(table)}/x.json", b"{")
    reader = MarkerReader(objects, table)
    assert [m.by for m in reader.in_flight(0.0)] == ["unknown"]
    assert reader.in_flight(61.0) == []


def test_tables_of_one_name_do_not_share_markers(tmp_path: Path) -> None:
    assert markers_folder("s3a://a/orders") != markers_folder("s3a://b/orders")
    assert markers_folder("s3a://a/orders/") == markers_folder("s3a://a/orders")


def test_path_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="absolute path"), dml_in_flight("orders"):
        pass


def test_watch_sees_dml_of_another_process(table: str, objects: LocalObjects) -> None:
    """It comes as a marker only: nobody in this process announces it."""
    dml = MarkedDml(objects, poll_seconds=0.01)
    begun, gone = threading.Event(), threading.Event()
    with dml.watching(table, begun.set, gone):
        objects.put(f"{markers_folder(table)}/x.json", Marker("other:1").to_json().encode())
        assert begun.wait(10)


def test_dml_of_this_process_is_told_at_once_and_waits_until_the_way_is_clear() -> None:
    listeners, order = Listeners(), []
    gone = threading.Event()

    def begun() -> None:
        order.append("told")
        threading.Timer(0.05, lambda: (order.append("gone"), gone.set())).start()

    with listeners.listening("t", begun, gone):
        listeners.tell("other")
        listeners.tell("t")
        order.append("reads its snapshot")
    listeners.tell("t")
    assert order == ["told", "gone", "reads its snapshot"]
