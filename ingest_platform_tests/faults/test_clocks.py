"""Clocks that are an hour off: they decide nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.embedded.process import ChildProcess
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.faults.steered import committed, eventually
from ingest_platform_tests.topic_records import Place, as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long]

HOUR = 3600
RECORDS = [b'{"id":%d}' % n for n in range(40)]


@pytest.fixture
def shifted(tmp_path: Path) -> Callable[[DeployedStream, int], DeployedStream]:
    """The stream, its drivers' wall clock off by so many seconds; the JVM's too."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler: what shifts a JVM's clock is no Python package")
    library = tmp_path / "shifted_clock.so"
    source = Path(__file__).with_name("shifted_clock.c")
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)

    def shift(stream: DeployedStream, seconds: int) -> DeployedStream:
        clock = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(seconds)}
        return replace(stream, environ={**stream.environ, **clock})

    return shift


def test_take_over_between_hosts_two_hours_apart(
    kafka: KafkaServer,
    topic: Callable[..., str],
    deploy: Callable[..., DeployedStream],
    shifted: Callable[[DeployedStream, int], DeployedStream],
) -> None:
    """Fault 28: the first driver lives an hour ahead, its successor an hour behind.

    By its dates the lease is taken before it was given, and the table's commits run backwards.
    """
    name = topic(2)
    stream = deploy(name, "id BIGINT", trigger="1s")
    places: list[Place] = []

    def send() -> None:
        places.extend(produce(kafka.bootstrap_servers, name, as_records(RECORDS, partitions=2)))

    def wrote(generation: int) -> bool:
        return committed(stream, generation) is not None

    send()
    drivers: list[ChildProcess] = []
    try:
        drivers.append(shifted(stream, HOUR).start())
        eventually(lambda: wrote(1), tell=drivers[0].log_tail)
        drivers.append(shifted(stream, -HOUR).start())
        eventually(lambda: not drivers[0].is_running(), tell=drivers[0].log_tail)
        assert drivers[0].popen.returncode in {0, 3}, drivers[0].log_tail()
        send()
        eventually(lambda: wrote(2), tell=drivers[1].log_tail)
        eventually(lambda: sum(stream.held().values()) >= len(places), tell=drivers[1].log_tail)
    finally:
        for driver in drivers:
            driver.stop()
    first, second = lease_times(stream)
    assert first > second, "the clocks were not shifted"
    stream.assert_holds(places)


def lease_times(stream: DeployedStream) -> list[str]:
    """When each generation was taken, by its driver's clock."""
    keys = stream.objects.list(f"streams/{stream.spec.name}/lease")
    texts = [stream.objects.get(key) or b"" for key in keys if key.endswith(".json")]
    return [json.loads(text)["taken_at"] for text in texts]
