"""Two drivers of one stream, and the ends of one: whoever started what, the data are right."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.embedded.process import ChildProcess
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import Place, as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

RECORDS = [b'{"id":%d}' % n for n in range(60)]
DEADLINE_SECONDS = 120.0
LEASE_LOST = 3


def wait_for(what: Callable[[], bool], driver: ChildProcess) -> None:
    """Poll until `what` holds."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not what():
        assert time.monotonic() < deadline, driver.log_tail()
        time.sleep(0.2)


def test_the_second_driver_takes_over_and_sigterm_drains(
    kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """However often a stream is launched, one driver is left (fault 4); a drain is short (3)."""
    name = topic(2)
    stream = deploy(name, "id BIGINT", trigger="1s")
    places: list[Place] = []

    def send() -> None:
        places.extend(produce(kafka.bootstrap_servers, name, as_records(RECORDS, partitions=2)))

    def generation_writes(generation: int) -> bool:
        status = stream.status()
        return bool(status and status.generation == generation and status.last_batch)

    send()
    first = stream.start()
    second: ChildProcess | None = None
    try:
        wait_for(lambda: generation_writes(1), first)
        second = stream.start()
        send()
        wait_for(lambda: not first.is_running(), first)
        # It ends by itself: drained by its heartbeat, or refused by the fence before a commit.
        assert first.popen.returncode in {0, LEASE_LOST}, first.log_tail()
        send()
        wait_for(lambda: generation_writes(2), second)
        wait_for(lambda: sum(stream.held().values()) == len(places), second)
        asked = time.monotonic()
        second.signal(signal.SIGTERM)
        assert second.popen.wait(30) == 0, second.log_tail()
        assert time.monotonic() - asked <= 30
    finally:
        first.stop()
        if second:
            second.stop()
    stream.assert_holds(places)
