"""A driver that wants for memory, disk or rights: a clear end, and nothing lost in the end."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha512
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.embedded.process import ChildProcess
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.fault_proxy import FaultProxy
from ingest_platform_tests.faults.steered import committed, eventually
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long]

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

RECORDS = [b'{"id":%d}' % n for n in range(30)]
END_SECONDS = 180


def end_of(driver: ChildProcess) -> int:
    """Its exit code."""
    try:
        return driver.popen.wait(END_SECONDS)
    finally:
        driver.stop()


def said(driver: ChildProcess) -> str:
    """The last message, which is all that the driver has to say about its end."""
    text = driver.log.read_text(errors="replace")
    return text[text.rindex(" ERROR ") :]


def test_out_of_memory(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Fault 21: it ends, rather than limp on; what filled the heap is kept, for its owner only."""
    name = topic(1)
    stream = deploy(
        name,
        spark={"driver_memory": "640m"},
        transform="ingest_platform_tests.faults.hungry:hungry",
    )
    places = produce(kafka.bootstrap_servers, name, as_records(RECORDS))
    driver = replace(stream, environ={**stream.environ, "EAT": "1"}).start()
    assert end_of(driver) == 3
    assert "the driver's JVM ran out of memory; its heap dump: " in said(driver)
    assert "raise spark.driver_memory" in said(driver)
    folder = Path(stream.environ["INGEST_LOG_DIR"]) / stream.spec.name / "heap_dumps"
    (dump,) = folder.glob("*.hprof")
    assert dump.stat().st_size <= 700 << 20
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    status = stream.status()
    assert status
    assert status.error
    assert (status.error.kind, status.error.retryable) == ("OutOfMemoryFault", True)
    assert status.runs_at.heap_dumps == str(folder)
    dump.unlink()
    stream.drain(spark)
    stream.assert_holds(places)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_disk_full(
    small_disk: Path, spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Fault 20: table, checkpoint and status lie on the disk that is full."""
    name = topic(1)
    path = str(small_disk / "lake" / "stream")
    stream = deploy(name, "id BIGINT, pad STRING", table={"path": path}, trigger="1s")
    places = produce(kafka.bootstrap_servers, name, as_records(RECORDS))
    ballast = small_disk / "ballast"
    driver = stream.start()
    try:
        eventually(lambda: committed(stream, 1) is not None, tell=driver.log_tail)
        fill = f"head -c 30M /dev/zero > {ballast}"
        subprocess.run(["sh", "-c", fill], capture_output=True, check=False)
        pads = [json.dumps({"id": n, "pad": _noise(n)}).encode() for n in range(20_000)]
        places += produce(kafka.bootstrap_servers, name, as_records(pads))
        assert end_of(driver) == 3
    finally:
        driver.stop()
    assert "free space on that file system" in said(driver)
    assert "Traceback" not in said(driver)
    ballast.unlink()
    stream.drain(spark)
    stream.assert_holds(places)


def _noise(number: int) -> str:
    """Text that no codec makes much shorter."""
    return sha512(str(number).encode()).hexdigest()


def test_s3_refuses_in_the_middle(
    kafka: KafkaServer, topic: MakeTopic, deploy: Deploy, s3: S3Bucket
) -> None:
    """Fault 19: a policy or a key was changed under the driver."""
    name = topic(1)
    stream = deploy(name, s3=s3, trigger="1s")
    places = produce(kafka.bootstrap_servers, name, as_records(RECORDS))
    with FaultProxy(s3.endpoint) as proxy:
        behind = replace(stream, environ={**stream.environ, "AWS_ENDPOINT_URL": proxy.endpoint})
        driver = behind.start()
        try:
            eventually(lambda: committed(stream, 1) is not None, tell=driver.log_tail)
            refused = proxy.answer(403, path=".*")
            places += produce(kafka.bootstrap_servers, name, as_records(RECORDS))
            assert refused.wait_for_hits(1, deadline=60)
            assert end_of(driver) == 3
        finally:
            driver.stop()
        text = said(driver)
        assert "remedy: check the" in text, text
        for secret in (s3.secret_key, "Traceback", "\tat "):
            assert secret not in text
        proxy.clear()
        successor = behind.start("--available-now")
        assert end_of(successor) == 0, successor.log_tail()
    stream.assert_holds(places)
