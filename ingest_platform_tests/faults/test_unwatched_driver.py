"""A driver that nobody supervises, and one whose brokers are away: it says so, and goes on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ingest_platform.adapters.contact_store import ContactStore
from ingest_platform.embedded.kafka import KafkaServer, start_kafka
from ingest_platform.embedded.process import ChildProcess
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform.model.contact import Contact
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import Status
from ingest_platform.model.times import utc_now
from ingest_platform_tests.alert_receivers import HttpReceiver, http_receiver
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import Place, as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

RECORDS = [b'{"id":%d}' % n for n in range(20)]
SLOW_SECONDS = 30.0
SILENCE_SECONDS = 180.0


def wait_for(what: Callable[[], object], driver: ChildProcess, seconds: float = 120) -> None:
    """Poll until `what` holds."""
    deadline = time.monotonic() + seconds
    while not what():
        assert driver.is_running(), driver.log_tail()
        assert time.monotonic() < deadline, driver.log_tail()
        time.sleep(0.5)


def seen(stream: DeployedStream) -> Status:
    status = stream.status()
    assert status
    return status


def rows_counted(stream: DeployedStream) -> float:
    """What Prometheus would scrape."""
    text = httpx.get(f"{seen(stream).runs_at.health}/metrics", timeout=5).text
    (found,) = [f for f in text_string_to_metric_families(text) if f.name == "ingest_rows"]
    return found.samples[0].value


def with_webhook(stream: DeployedStream, receiver: HttpReceiver, tmp_path: Path) -> DeployedStream:
    settings = tmp_path / "alerts.yaml"
    attributes = {"channels": [{"type": "webhook"}], "supervisor_silent_after": SILENCE_SECONDS}
    settings.write_text(
        yaml.safe_dump({"type": "ingest_platform.Alerts", "attributes": attributes})
    )
    more = {"INGEST_ALERTS": str(settings), "ALERT_WEBHOOK_URL": receiver.url}
    return replace(stream, environ={**stream.environ, **more})


def test_silent_supervisor_is_told_by_the_driver_through_a_slow_webhook(
    kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, tmp_path: Path
) -> None:
    """Fault 7 for people, and fault 30: the webhook takes 30 s, and ingest does not notice."""
    name, places = topic(), list[Place]()

    def send() -> None:
        places.extend(produce(kafka.bootstrap_servers, name, as_records(RECORDS)))

    with http_receiver() as receiver:
        stream = with_webhook(deploy(name, "id BIGINT", trigger="1s"), receiver, tmp_path)
        receiver.delay = SLOW_SECONDS
        contacts = ContactStore(stream.objects, stream.spec.name)

        def supervise() -> None:
            at = utc_now().isoformat()
            contacts.tell(Contact(stream.spec.name, at, StreamState.RUNNING, "healthy"))

        supervise()
        send()
        driver = stream.start()
        try:
            wait_for(lambda: (s := stream.status()) and s.last_batch, driver)
            assert httpx.get(f"{seen(stream).runs_at.health}/healthz", timeout=5).status_code == 200
            wait_for(lambda: rows_counted(stream) == len(places), driver, 30)
            wait_for(lambda: receiver.asked, driver, SILENCE_SECONDS + 60)
            before = seen(stream).totals["batches"]
            for _ in range(5):  # the webhook holds the driver's message meanwhile
                send()
                time.sleep(4)
            assert not receiver.taken
            assert seen(stream).totals["batches"] >= before + 5
            wait_for(lambda: receiver.taken, driver, SLOW_SECONDS)
            receiver.delay = 0
            time.sleep(60)  # a supervisor's minute
            supervise()
            wait_for(lambda: len(receiver.told()) == 2, driver, 60)
            asked = time.monotonic()
            driver.signal(signal.SIGTERM)
            assert driver.popen.wait(30) == 0, driver.log_tail()
            assert time.monotonic() - asked <= 30
        finally:
            driver.stop()
        key = f"{stream.spec.name}/supervisor_silent"
        assert receiver.told() == [("raised", key), ("resolved", key)]
        assert len(receiver.asked) == 2
    stream.assert_holds(places)


def test_heart_beats_on_while_the_broker_hangs(deploy: Deploy, tmp_path: Path) -> None:
    """Fault 10: a driver without a broker is neither silent, which would end it, nor restarted."""
    with start_kafka(tmp_path / "broker", env=os.environ) as broker:
        ensure_topic(broker.bootstrap_servers, "t", partitions=1)
        servers = {"topic": "t", "bootstrap_servers": broker.bootstrap_servers}
        stream = deploy("t", "id BIGINT", trigger="1s", source=servers)
        places = produce(broker.bootstrap_servers, "t", as_records(RECORDS))
        driver = stream.start()
        try:
            wait_for(lambda: (s := stream.status()) and s.last_batch, driver)
            broker.child.signal(signal.SIGSTOP)
            try:
                wait_for(lambda: seen(stream).error, driver, 60)
                error, beats = seen(stream).error, set[str]()
                assert error
                assert error.kind == "KafkaUnreachableError"
                for _ in range(40):
                    beats.add(seen(stream).updated_at)
                    time.sleep(1)
                assert len(beats) >= 2
                health = httpx.get(f"{seen(stream).runs_at.health}/healthz", timeout=5)
                assert health.status_code == 200
                assert "KafkaUnreachableError" in health.json()["reason"]
            finally:
                broker.child.signal(signal.SIGCONT)
            wait_for(lambda: seen(stream).error is None, driver, 90)
            places += produce(broker.bootstrap_servers, "t", as_records(RECORDS))
            wait_for(lambda: sum(stream.held().values()) == len(places), driver, 90)
            assert seen(stream).generation == 1
        finally:
            driver.stop()
        stream.assert_holds(places)
