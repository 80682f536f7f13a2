"""The producer's pace and its book-keeping, which the demo's proof rests on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest_platform.adapters.kafka_admin import KafkaAdmin
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.embedded.producer import Ledger, records_due
from ingest_platform.embedded.receipts import Acknowledged, Receipts
from ingest_platform.spec import KafkaEnvironment


@dataclass(frozen=True)
class Delivered:
    """What librdkafka hands to the callback."""

    where: int | None
    at: int | None

    def partition(self) -> int | None:
        return self.where

    def offset(self) -> int | None:
        return self.at


def test_the_rate_is_kept_over_a_wave():
    assert records_due(600, 4000) == pytest.approx(600 * 4000, rel=0.001)


def test_the_rate_swings_but_never_stops():
    seconds = [records_due(t + 1, 4000) - records_due(t, 4000) for t in range(600)]
    assert 3350 <= min(seconds) < max(seconds) <= 4650


def test_acknowledgements_are_counted_by_partition(tmp_path):
    ledger = Ledger(tmp_path / "r.json", {0: 100, 1: 0})
    for offset in (100, 101, 102):
        ledger.delivered(None, Delivered(0, offset))  # type: ignore[arg-type]
    ledger.delivered(None, Delivered(1, 0))  # type: ignore[arg-type]
    ledger.write(done=True)
    read = Receipts.read(tmp_path / "r.json")
    assert read.partitions == {0: Acknowledged(100, 103, 3), 1: Acknowledged(0, 1, 1)}
    assert (read.count, read.end, read.failed, read.done) == (4, 104, 0, True)


def test_a_refused_record_is_a_failure(tmp_path):
    ledger = Ledger(tmp_path / "r.json", {0: 0})
    ledger.delivered("refused", Delivered(0, None))  # type: ignore[arg-type]
    assert ledger.receipts().failed == 1
    assert ledger.receipts().count == 0


@pytest.mark.parametrize(
    ("acknowledged", "whole"),
    [
        (Acknowledged(5, 8, 3), True),
        (Acknowledged(5, 5, 0), True),
        (Acknowledged(5, 8, 4), False),
        (Acknowledged(5, 8, 2), False),
    ],
)
def test_doubled_and_missing_acknowledgements_show(acknowledged, whole):
    assert acknowledged.whole is whole


def test_receipts_that_are_not_there_are_empty(tmp_path):
    assert Receipts.read(tmp_path / "none.json") == Receipts()


@pytest.mark.slow
def test_the_producer_ends_with_every_record_acknowledged(
    kafka: KafkaServer, topic: Callable[..., str], tmp_path: Path
):
    """What the file says must be what the broker holds, or the demo's audit compares with air."""
    name = topic(partitions=3)
    env = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
    command = [sys.executable, "-m", "ingest_platform.embedded.producer", "--topic", name]
    command += ["--rate", "2000", "--receipts", str(tmp_path / "r.json"), "--seed", "1"]
    process = subprocess.Popen(command, env=env)
    try:
        deadline = time.monotonic() + 60
        while Receipts.read(tmp_path / "r.json").count < 500 and time.monotonic() < deadline:
            time.sleep(0.1)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    receipts = Receipts.read(tmp_path / "r.json")
    assert receipts.done
    assert receipts.count >= 500
    admin = KafkaAdmin(KafkaEnvironment(bootstrap_servers=kafka.bootstrap_servers))
    ends = {partition: end for _, partition, end in admin.latest([name])}
    assert ends == {n: p.next for n, p in receipts.partitions.items()}
    assert all(p.whole for p in receipts.partitions.values())
