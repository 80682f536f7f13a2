"""The demo's producer: clicks at a steady rate into one topic, every acknowledgement counted.

    python -m ingest_platform.embedded.producer --receipts FILE [--rate 4000]

Ends on SIGTERM or SIGINT, when all that it sent is acknowledged: exit code 0, and the counts are
in FILE. Exit code 3 if records were refused or stayed unacknowledged.
"""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
from confluent_kafka import KafkaError, Message, Producer

from ingest_platform.adapters.kafka_admin import KafkaAdmin
from ingest_platform.embedded.clickstream import ClickStream
from ingest_platform.embedded.receipts import Acknowledged, Receipts
from ingest_platform.errors import IngestError
from ingest_platform.spec import KafkaEnvironment

RATE = 4000
_WAVE = 0.15  # of the rate, up and down
_WAVE_SECONDS = 600.0  # one "day"
_TICK_SECONDS = 0.02
_FLUSH_SECONDS = 30.0
_CATCH_UP_SECONDS = 2.0

_SETTINGS = {
    "acks": "all",
    # Retries must neither double nor reorder: the counts are the demo's yardstick.
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 50,
    "queue.buffering.max.messages": 200_000,
    "log_level": 0,
}


def records_due(elapsed: float, rate: float) -> int:
    """How many records shall have been sent `elapsed` seconds after the start.

    The rate swings around `rate` (records per second) as it does over a day, only faster.
    """
    turn = 2 * math.pi / _WAVE_SECONDS
    return int(rate * (elapsed + _WAVE / turn * (1 - math.cos(turn * elapsed))))


class Ledger:
    """Counts acknowledgements as they arrive; written to a file every second."""

    def __init__(self, path: Path, ends: dict[int, int]) -> None:
        """`ends` are the partitions' ends before the first record."""
        self._path = path
        self._count = dict.fromkeys(ends, 0)
        self._next = dict(ends)
        self._start = dict(ends)
        self.failed = 0

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Book one record; librdkafka calls it."""
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self.failed += 1
            return
        self._count[partition] = self._count.get(partition, 0) + 1
        self._next[partition] = max(self._next.get(partition, 0), offset + 1)

    def receipts(self) -> Receipts:
        """As of now."""
        partitions = {
            n: Acknowledged(self._start.get(n, 0), self._next[n], self._count[n])
            for n in sorted(self._next)
        }
        return Receipts(partitions, self.failed)

    def write(self, *, done: bool = False) -> None:
        """Leave the counts in the file."""
        replace(self.receipts(), done=done).write(self._path)


class Sender:
    """Sends at a pace until it is told to stop."""

    def __init__(self, producer: Producer, topic: str, clicks: ClickStream, ledger: Ledger) -> None:
        self._producer, self._topic = producer, topic
        self._clicks, self._ledger = clicks, ledger

    def run(self, rate: float, stop: threading.Event) -> int:
        """Send until `stop`; then wait for acknowledgements, and return how many are missing."""
        started, sent, written = time.monotonic(), 0, 0.0
        while not stop.wait(_TICK_SECONDS):
            now = time.monotonic()
            due = records_due(now - started, rate)
            if due - sent > rate * _CATCH_UP_SECONDS:
                sent = due - int(rate * _TICK_SECONDS)  # the machine slept: no burst afterwards
            self._send(due - sent)
            sent = due
            if now - written >= 1:
                self._ledger.write()
                written = now
        missing = self._producer.flush(_FLUSH_SECONDS)
        self._ledger.failed += missing
        self._ledger.write(done=True)
        return self._ledger.failed

    def _send(self, count: int) -> None:
        now = datetime.now(UTC)
        for _ in range(count):
            record = self._clicks.record(now)
            while True:
                try:
                    self._producer.produce(
                        self._topic,
                        record.value,
                        record.key,
                        on_delivery=self._ledger.delivered,
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)  # the broker is slow: wait, never drop
        self._producer.poll(0)


@click.command(help=__doc__)
@click.option("--topic", default="clicks", show_default=True)
@click.option("--rate", default=float(RATE), show_default=True, help="Records per second.")
@click.option("--receipts", required=True, type=click.Path(path_type=Path))
@click.option("--seed", type=int, help="For the same clicks again.")
def main(topic: str, rate: float, receipts: Path, seed: int | None) -> None:
    """Entry point of the process."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    kafka = KafkaEnvironment.from_env(os.environ)
    try:
        latest = KafkaAdmin(kafka).latest([topic])
    except IngestError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    ledger = Ledger(receipts, {partition: end for _, partition, end in latest})
    ledger.write()
    producer = Producer({**kafka.client_options(), **_SETTINGS})
    clicks = ClickStream(random.Random(seed))  # noqa: S311 - not for secrets
    failed = Sender(producer, topic, clicks, ledger).run(rate, stop)
    if failed:
        click.echo(f"{failed} records were not acknowledged", err=True)
        sys.exit(3)


if __name__ == "__main__":
    main()
