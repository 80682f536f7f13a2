"""How long a stream stands still: a planned turnover, and a SIGKILL, of real drivers under load."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from ingest_platform.adapters.processes import session_members
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.embedded.kafka import start_kafka
from ingest_platform.embedded.topics import ensure_topic
from ingest_platform.steer.starting import Started
from ingest_platform.steer.turnover import Patience, turnover
from ingest_platform_tests.benchmarks.figures import Figures, percentile
from ingest_platform_tests.deployed_stream import DeployedStream, spec_document
from ingest_platform_tests.faults.steered import committed, eventually, steering
from ingest_platform_tests.faults.supervised import supervised
from ingest_platform_tests.topic_records import as_records, produce

TURNOVER, RECOVERY = "turnover", "recovery"
_SECONDS = 300.0


@contextmanager
def _loaded(folder: Path) -> Iterator[DeployedStream]:
    """A stream into whose topic records come all the time."""
    with start_kafka(folder / "kafka", env=os.environ) as kafka:
        ensure_topic(kafka.bootstrap_servers, "clicks", partitions=4)
        document = spec_document(
            "bench", "clicks", "id BIGINT", str(folder / "lake" / "bench"), {"trigger": "1 second"}
        )
        file = folder / "defs.yaml"
        file.write_text(yaml.safe_dump(document))
        environ = {
            **os.environ,
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "INGEST_LOG_DIR": str(folder / "logs"),
        }
        done = threading.Event()

        def send() -> None:
            while not done.wait(0.2):
                values = [b'{"id":%d}' % n for n in range(40)]
                produce(kafka.bootstrap_servers, "clicks", as_records(values, partitions=4))

        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield DeployedStream(file, environ)
        finally:
            done.set()
            sender.join()


def turnovers(figures: Figures, folder: Path, runs: int) -> dict[str, Any]:
    """From the last commit of each generation to the first of the next."""
    gaps: list[float] = []
    since = 0
    with _loaded(folder) as stream, steering(stream) as reach:
        patience = Patience(drain=60, start=180)
        for generation in range(1, runs + 2):
            outcome = turnover(reach, patience, by="bench", reason="bench")
            if not isinstance(outcome, Started):
                raise RuntimeError(f"turnover {generation}: {outcome}")  # noqa: TRY004

            def has_committed(generation: int = generation) -> bool:
                return committed(stream, generation) is not None

            eventually(has_committed, _SECONDS, tell=stream.status)
            time.sleep(5)
            if generation > 1:
                gaps.append(_longest_gap(stream, since))
            since = _version(stream)
    _book(figures, TURNOVER, "gap", gaps)
    return {"seconds": [round(gap, 2) for gap in gaps]}


def recoveries(figures: Figures, folder: Path, runs: int) -> dict[str, Any]:
    """From SIGKILL of driver and JVM to the first new commit, with the sensor's own interval."""
    found: list[float] = []
    with _loaded(folder) as stream, supervised(stream, folder / "dagster", tick=15.0) as watch:
        for generation in range(1, runs + 1):

            def has_committed(generation: int = generation) -> bool:
                return committed(stream, generation) is not None

            eventually(has_committed, _SECONDS, tell=lambda: watch.said[-3:])
            time.sleep(62)  # a driver that lasted: backoff begins anew
            status = stream.status()
            if status is None:
                raise RuntimeError("the stream has no status")
            where, killed = status.runs_at, time.time()
            for pid in session_members(where.pid, since_ticks=where.started_ticks):
                os.kill(pid, signal.SIGKILL)
            eventually(
                lambda at=killed: _newest(stream) > at, _SECONDS, tell=lambda: watch.said[-3:]
            )
            found.append(_first_after(stream, killed) - killed)
    _book(figures, RECOVERY, "until the next commit", found)
    return {"seconds": [round(seconds, 2) for seconds in found]}


def _book(figures: Figures, part: str, name: str, seconds: list[float]) -> None:
    for value in seconds:
        figures.add(part, "driver", name, value, "s")
    figures.add(part, "driver", f"{name}, p95", percentile(seconds, 95), "s")


def _log(stream: DeployedStream) -> TableLog:
    return TableLog(stream.spec.table.path, stream.storage)


def _version(stream: DeployedStream) -> int:
    return _log(stream).version() or 0


def _times(stream: DeployedStream, after: int = -1) -> list[float]:
    return sorted(c.timestamp_ms / 1000 for c in _log(stream).commits(after) if c.ledger)


def _longest_gap(stream: DeployedStream, after: int) -> float:
    times = _times(stream, after - 1)
    return max((b - a for a, b in pairwise(times)), default=0.0)


def _newest(stream: DeployedStream) -> float:
    return max(_times(stream, _version(stream) - 5), default=0.0)


def _first_after(stream: DeployedStream, at: float) -> float:
    return min(time for time in _times(stream) if time > at)
