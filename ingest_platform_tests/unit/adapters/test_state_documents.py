"""Status and control documents survive a round trip and tolerate damage."""

from __future__ import annotations

from ingest_platform.adapters.control_store import ControlStore
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.model.control import Control, DrainRequest, Pause
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import (
    AutoCompactionReport,
    BatchReport,
    ErrorReport,
    RunsAt,
    Status,
)

STATUS = Status(
    stream="clicks",
    session="5f0c",
    generation=3,
    state=StreamState.RUNNING,
    runs_at=RunsAt(host="h", pid=17, started_ticks=1.5, log="/logs/clicks"),
    last_batch=BatchReport(id=1, rows=10, phases={"decode": 0.5}),
    recent=(BatchReport(id=0), BatchReport(id=1, rows=10, phases={"decode": 0.5})),
    behind={"clicks-0": 4},
    auto_compaction=AutoCompactionReport(completed=3, yielded={"at_dequeue": 1}),
    error=ErrorReport(kind="StorageUnavailableError", retryable=True),
)


def test_status_round_trip(objects):
    store = StatusStore(objects)
    assert store.read("clicks") is None
    store.write(STATUS)
    assert store.read("clicks") == STATUS
    assert store.read("other") is None


def test_torn_and_foreign_status_is_none(objects):
    for body in (b"", b'{"stream": "cl', b"[]", b"\xff\xfe", b'{"state": "unheard of"}'):
        objects.put("streams/clicks/status.json", body)
        assert StatusStore(objects).read("clicks") is None


def test_nothing_said_means_run(objects):
    assert ControlStore(objects, "clicks").read() == Control()


def test_pause_and_drain_do_not_undo_each_other(objects):
    store = ControlStore(objects, "clicks")
    pause = Pause(by="ada", since="2026-01-31T12:00:00+00:00", reason="broker move")
    drain = DrainRequest(generation=4, by="supervisor", at="2026-01-31T12:00:01+00:00")
    store.pause(pause)
    store.request_drain(drain)
    assert store.read() == Control(pause, drain)
    store.resume()
    assert store.read() == Control(None, drain)
    assert ControlStore(objects, "orders").read() == Control()


def test_drain_concerns_its_generation_and_older_ones_only(objects):
    control = Control(drain=DrainRequest(generation=4, by="ada", at=""))
    assert [control.drains(g) for g in (3, 4, 5)] == [True, True, False]


def test_unreadable_pause_still_pauses_and_unreadable_drain_does_not_drain(objects):
    objects.put("streams/clicks/control/pause.json", b"{torn")
    objects.put("streams/clicks/control/drain.json", b"{torn")
    control = ControlStore(objects, "clicks").read()
    assert control.pause is not None
    assert control.drain is None
