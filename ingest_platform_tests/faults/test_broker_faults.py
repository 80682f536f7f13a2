"""Brokers that are away, under supervision: nothing lost, no storm, soon back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_platform.embedded.kafka import KafkaServer, start_kafka
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform_tests.alert_receivers import http_receiver
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.faults.steered import committed, eventually
from ingest_platform_tests.faults.supervised import Supervision, supervised
from ingest_platform_tests.topic_records import Place, as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long, QUIET]

AWAY_SECONDS = 120.0
RECOVERY_SECONDS = 90.0
RESOLVED_SECONDS = 180.0  # two minutes in which all is well, and a look
LAUNCHES = (
    8  # in two minutes, with backoff from 2 s on: 2, 4, 8, 16, 32, 64 and each one's own time
)


def test_brokers_stopped_for_two_minutes_and_then_killed(
    tmp_path: Path, deploy: Callable[..., DeployedStream]
) -> None:
    """Faults 10 and 9, in one life of a stream."""
    places: list[Place] = []

    def send(server: KafkaServer) -> None:
        values = [b'{"id":%d}' % n for n in range(50)]
        places.extend(produce(server.bootstrap_servers, "clicks", as_records(values)))

    def caught_up(stream: DeployedStream) -> bool:
        return sum(stream.held().values()) >= len(places)

    alerts = parse_alerts({"channels": [{"type": "webhook"}]}, {}, where="defs.yaml")
    with http_receiver() as receiver, start_kafka(tmp_path / "broker", env=os.environ) as server:
        ensure_topic(server.bootstrap_servers, "clicks", partitions=1)
        stream = deploy("clicks", trigger="1s")
        more = {
            "KAFKA_BOOTSTRAP_SERVERS": server.bootstrap_servers,
            "ALERT_WEBHOOK_URL": receiver.url,
            "INGEST_ALERTS_DIR": str(tmp_path / "spare"),
        }
        stream = replace(stream, environ={**stream.environ, **more})
        with supervised(stream, tmp_path / "dagster", alerts=alerts) as supervision:
            send(server)
            eventually(lambda: committed(stream, 1) is not None, tell=lambda: supervision.said)
            eventually(lambda: caught_up(stream), tell=lambda: supervision.said)
            _stopped(server, supervision)
            send(server)
            eventually(lambda: caught_up(stream), RECOVERY_SECONDS, tell=lambda: supervision.said)
            eventually(lambda: len(receiver.told()) > 1, RESOLVED_SECONDS, tell=lambda: supervision)
            (raised, key), (resolved, same) = receiver.told()
            assert (raised, resolved, same) == ("raised", "resolved", key)
            assert "kafka_unreachable" in key
            server.child.signal(signal.SIGKILL)
            server.stop()
            with start_kafka(tmp_path / "broker", env=os.environ) as again:
                send(again)
                eventually(
                    lambda: caught_up(stream), RECOVERY_SECONDS, tell=lambda: supervision.said
                )
                stream.assert_holds(places)
            assert supervision.failed is None
            assert len(receiver.told()) == 2


def _stopped(server: KafkaServer, supervision: Supervision) -> None:
    asked = len(supervision.asked)
    server.child.signal(signal.SIGSTOP)
    time.sleep(AWAY_SECONDS)
    server.child.signal(signal.SIGCONT)
    launches = supervision.asked[asked:]
    assert len(launches) <= LAUNCHES, launches
