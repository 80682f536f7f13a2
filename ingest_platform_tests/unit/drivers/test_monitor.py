"""Health over HTTP and the dead man's switch, asked as Prometheus and a person would."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ingest_platform.adapters.alerts.delivery import Delivery
from ingest_platform.adapters.alerts.outbox import Outbox
from ingest_platform.adapters.contact_store import ContactStore
from ingest_platform.adapters.kafka_admin import KafkaAdmin
from ingest_platform.adapters.kafka_lag import LagProbe
from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.drivers.heartbeat import Heartbeat
from ingest_platform.drivers.monitor import Monitor
from ingest_platform.drivers.progress import Progress
from ingest_platform.drivers.supervisor_watch import SupervisorWatch
from ingest_platform.model.contact import Contact
from ingest_platform.model.offsets import Positions
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import AutoCompactionReport, BatchReport, ErrorReport, JvmReport
from ingest_platform.spec import KafkaEnvironment
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform_tests.alert_receivers import http_receiver
from ingest_platform_tests.factories import NOW, make_spec, make_status

KEY = "clicks/supervisor_silent"


def settings(*channels: dict):
    return parse_alerts({"channels": list(channels)}, {}, where="defs.yaml")


@contextmanager
def monitor(tmp_path, **monitoring):
    spec = make_spec(monitoring=monitoring)
    progress = Progress(base=make_status(state=StreamState.STARTING))
    made = Monitor(spec, LocalObjects(tmp_path), {}, settings(), progress)
    made.start()
    try:
        yield made, progress
    finally:
        made.close()


def get(progress: Progress, path: str) -> httpx.Response:
    return httpx.get(f"{progress.base.runs_at.health}{path}", timeout=5)


def samples(progress: Progress) -> dict[str, float]:
    """Metrics by name, with the value of their other label where there is one."""
    return {
        sample.name + "".join(v for k, v in sample.labels.items() if k != "stream"): sample.value
        for family in text_string_to_metric_families(get(progress, "/metrics").text)
        for sample in family.samples
    }


def test_address_is_free_loopback_and_in_the_status(tmp_path):
    with monitor(tmp_path) as (_, progress):
        url = progress.status(JvmReport(), NOW).runs_at.health
        assert url
        assert url.startswith("http://127.0.0.1:")
        assert get(progress, "/nothing").status_code == 404


def test_health_follows_the_driver(tmp_path):
    with monitor(tmp_path) as (made, progress):
        starting = get(progress, "/healthz")
        assert (starting.status_code, starting.json()["state"]) == (503, "starting")
        made.observe(make_status())
        assert get(progress, "/healthz").json()["healthy"]
        trouble = ErrorReport("KafkaUnreachableError", "no broker answered")
        made.observe(make_status(error=trouble))
        waiting = get(progress, "/healthz")
        assert waiting.status_code == 200
        assert "no broker answered" in waiting.json()["reason"]
        made.observe(make_status(state=StreamState.FAILED, reason="batch 7 is truncated"))
        failed = get(progress, "/healthz")
        assert failed.status_code == 503
        assert failed.json()["reason"] == "failed: batch 7 is truncated"


def test_no_progress_is_not_healthy(tmp_path):
    """The heart beats and records are unread, but nothing is committed."""
    later = (NOW + timedelta(hours=1)).isoformat()
    stuck = make_status(updated_at=later, behind={"clicks-0": 5}, oldest_unread_age=3600.0)
    with monitor(tmp_path) as (made, progress):
        made.observe(stuck)
        answer = get(progress, "/healthz")
    assert answer.status_code == 503
    assert answer.json()["reason"].startswith("stuck: 5 records are unread")


def test_heart_that_stopped_is_not_healthy(tmp_path):
    with monitor(tmp_path) as (made, progress):
        made.observe(make_status())
        made._beat_at = time.monotonic() - 61  # a minute without a heartbeat
        answer = get(progress, "/healthz")
    assert answer.status_code == 503
    assert answer.json()["reason"] == "stale: no heartbeat for 61 s"


def test_metrics_tell_what_the_status_says_and_count_each_batch_once(tmp_path):
    batches = tuple(
        BatchReport(id=n, seconds=float(n), rows=10, finished_at=NOW.isoformat()) for n in (1, 2)
    )
    status = make_status(
        recent=batches,
        last_batch=batches[-1],
        totals={"rows": 20, "batches": 2, "quarantined": 1},
        behind={"clicks-0": 7},
        oldest_unread_age=3.5,
        jvm=JvmReport(heap_used=100, heap_max=1000, gc_seconds=1.5, gc_count=3),
    )
    with monitor(tmp_path) as (made, progress):
        made.observe(status)
        made.observe(status)
        found = samples(progress)
    assert found["ingest_rows_total"] == 20
    assert found["ingest_quarantined_total"] == 1
    assert found["ingest_lag_records"] == 7
    assert found["ingest_lag_seconds"] == 3.5
    assert found["ingest_heap_used_bytes"] == 100
    assert found["ingest_gc_seconds_total"] == 1.5
    assert found["ingest_batch_seconds_count"] == 2
    assert found["ingest_batch_seconds_bucket1.0"] == 1
    assert found["ingest_staterunning"] == 1
    assert found["ingest_statefailed"] == 0
    assert found["ingest_last_batch_timestamp_seconds"] == NOW.timestamp()


def test_metrics_tell_of_asynchronous_compaction_where_there_is_one(tmp_path):
    report = AutoCompactionReport(
        mode="inline",
        submitted=9,
        coalesced=4,
        completed=3,
        yielded={"at_dequeue": 0, "mid_flight": 2},
        fallbacks=1,
        files_removed=60,
    )
    with monitor(tmp_path) as (made, progress):
        assert not any("auto_compaction" in name for name in samples(progress))
        made.observe(make_status(auto_compaction=report))
        found = samples(progress)
    assert found["ingest_auto_compaction_submissions_totalsubmitted"] == 9
    assert found["ingest_auto_compaction_submissions_totaldropped"] == 0
    assert found["ingest_auto_compaction_attempts_totalcompleted"] == 3
    assert found["ingest_auto_compaction_attempts_totalyielded_mid_flight"] == 2
    assert found["ingest_auto_compaction_inline"] == 1
    assert found["ingest_auto_compaction_fallbacks_total"] == 1
    assert found["ingest_auto_compaction_files_removed_total"] == 60


@pytest.mark.parametrize("port", [0, None, "none"])
def test_nothing_is_served_when_switched_off(tmp_path, port):
    with monitor(tmp_path, port=port) as (_, progress):
        assert progress.base.runs_at.health is None


def test_port_of_the_predecessor_is_taken_over_when_it_is_free(tmp_path):
    """In an overlapped turnover both want the configured port; the stream waits for neither."""
    with socket.socket() as predecessor:
        predecessor.bind(("127.0.0.1", 0))
        predecessor.listen()
        port = predecessor.getsockname()[1]
        with monitor(tmp_path, port=port) as (made, progress):
            assert progress.base.runs_at.health is None
            predecessor.close()
            made._serve()
            assert progress.base.runs_at.health == f"http://127.0.0.1:{port}"
            assert get(progress, "/healthz").status_code == 503


class Silence:
    """A driver's watch over simulated time."""

    def __init__(self, tmp_path, receiver) -> None:
        self.now = NOW
        objects = LocalObjects(tmp_path)
        self.contacts, self.outbox = ContactStore(objects, "clicks"), Outbox(objects)
        self.receiver = receiver
        self.channels = [{"type": "webhook"}]
        self.objects = objects
        self.watch = self.restarted()

    def restarted(self) -> SupervisorWatch:
        delivery = Delivery(
            settings(*self.channels), {"ALERT_WEBHOOK_URL": self.receiver.url}, lambda: self.now
        )
        return SupervisorWatch("clicks", self.contacts, self.outbox, delivery, lambda: self.now)

    def look(self, times: int = 1, *, supervised: bool = False) -> timedelta | None:
        silent = None
        for _ in range(times):
            self.now += timedelta(seconds=30)
            if supervised:
                at = self.now.isoformat()
                self.contacts.tell(Contact("clicks", at, StreamState.RUNNING, "healthy"))
            silent = self.watch.look()
        return silent

    def told(self) -> list[str]:
        return [a["status"] for got in self.receiver.taken for a in got.document["alerts"]]


@pytest.fixture
def silence(tmp_path):
    with http_receiver() as receiver:
        yield Silence(tmp_path, receiver)


def test_silence_is_told_once_and_resolved_when_it_ends(silence):
    silence.look(4, supervised=True)
    assert silence.look(8) == timedelta(minutes=4, seconds=30)
    assert silence.told() == []
    silence.look(10)
    assert silence.told() == ["raised"]
    silence.look(4, supervised=True)
    assert silence.told() == ["raised", "resolved"]
    assert silence.outbox.shelves()[KEY].done == {2}


def test_driver_that_was_started_by_hand_misses_nobody(silence):
    assert silence.look(60) is None
    assert silence.told() == []


def test_successor_knows_what_its_predecessor_raised(silence):
    silence.look(2, supervised=True)
    silence.look(14)
    silence.watch = silence.restarted()
    silence.look(14)
    assert silence.told() == ["raised"]
    silence.look(4, supervised=True)
    assert silence.told() == ["raised", "resolved"]


def test_without_channels_the_alert_waits_for_the_sensor(silence):
    """A driver elsewhere may not have the settings: it must not mark as told what nobody told."""
    silence.channels = []
    silence.watch = silence.restarted()
    silence.look(2, supervised=True)
    silence.look(14)
    shelf = silence.outbox.shelves()[KEY]
    assert shelf.open
    assert not shelf.done


def test_heart_beats_on_while_the_brokers_are_away(tmp_path):
    """Otherwise two minutes without a broker would have every driver ended as hung."""
    progress = Progress(
        base=make_status(), read=Positions({"clicks": {0: 5}}), oldest_unread_age=0.0
    )
    kafka = KafkaEnvironment(bootstrap_servers="127.0.0.1:9")
    probe = LagProbe(kafka, ("clicks",))
    probe._admin = KafkaAdmin(kafka, timeout=0.5)  # 10 s are right for a broker, not for a test
    store, seen = StatusStore(LocalObjects(tmp_path)), []
    heart = Heartbeat(
        progress,
        store,
        probe,
        jvm=JvmReport,
        triggers=dict,
        must_end=lambda: None,
        end=lambda _: None,
        observe=seen.append,
    )
    heart.beat()
    status = store.read("clicks")
    assert status
    assert status.error
    assert status.error.kind == "KafkaUnreachableError"
    assert status.oldest_unread_age, "caught up was true only as long as somebody could look"
    heart.beat()
    again = store.read("clicks")
    assert again
    assert again.error == status.error  # since when: from the first of the same kind
    assert len(seen) == 2
    progress.read = Positions()
    heart.beat()
    well = store.read("clicks")
    assert well
    assert replace(well, updated_at="").error is None
