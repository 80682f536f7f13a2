"""Slow drift: there is none under maintenance, and a driver that drifts is replaced in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from statistics import median

import dagster as dg
import pytest
from rich.console import Console

from ingest_platform.components import tags
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.embedded.s3 import S3Server
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform_tests.alert_receivers import http_receiver
from ingest_platform_tests.benchmarks.bench_drift import PARTITIONS, Settings, fill, measure
from ingest_platform_tests.benchmarks.drift_forms import DriversApart, Life
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.faults.slowing import SECONDS_FILE
from ingest_platform_tests.faults.steered import committed, eventually
from ingest_platform_tests.faults.supervised import supervised
from ingest_platform_tests.topic_records import steady_load

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.long, QUIET]

WARN, FAIL = 60.0, 600.0
SLOWER = 1.25  # than at first: what two cores' noise may be


@pytest.mark.timeout(1200)
def test_batches_and_heap_stay_as_they_were_under_maintenance(
    tmp_path: Path,
    kafka: KafkaServer,
    topic: Callable[..., str],
    s3_server: S3Server,
    bucket: S3Bucket | None,
) -> None:
    """Hours of a table in fast motion, compacted and vacuumed beside the stream."""
    settings, name = Settings(batches=720, records=200, look_every=120), topic(PARTITIONS)
    fill(kafka.bootstrap_servers, name, settings)
    life = Life(kafka.bootstrap_servers, name, settings.records, tmp_path / "life")
    if bucket:
        life = replace(
            life,
            bucket=f"s3a://{bucket.bucket}",
            disk=s3_server.on_disk(bucket.bucket),
            environ=bucket.environment(),
        )
    course = measure(DriversApart(), life, settings, Console(file=StringIO()))
    warm = course.warm()
    share = len(warm) // 10
    assert median(warm[-share:]) <= SLOWER * median(warm[:share])
    assert course.heap[-1] <= SLOWER * course.heap[0]
    assert course.files[-1] < settings.batches / 2, "compaction had nothing to do with it"


@pytest.mark.timeout(1500)
def test_a_drifting_driver_is_replaced_and_lag_is_told_before_its_limit(
    tmp_path: Path,
    kafka: KafkaServer,
    topic: Callable[..., str],
    deploy: Callable[..., DeployedStream],
    bucket: S3Bucket | None,
) -> None:
    """What a restart heals is healed unasked; of what it does not heal, a person learns in time."""
    name, slow = topic(2), tmp_path / "seconds"
    stream = deploy(
        name,
        s3=bucket,
        trigger="1s",
        transform="ingest_platform_tests.faults.slowing:slower_with_each_batch",
        freshness={"warn": f"{WARN:.0f}s", "fail": f"{FAIL:.0f}s"},
        supervision={"turnover_every": "1 minute"},
    )
    alerts = parse_alerts({"channels": [{"type": "webhook"}]}, {}, where="defs.yaml")
    with http_receiver() as receiver:
        more = {
            SECONDS_FILE: str(slow),
            "ALERT_WEBHOOK_URL": receiver.url,
            "INGEST_ALERTS_DIR": str(tmp_path / "spare"),
        }
        stream = replace(stream, environ={**stream.environ, **more})
        with supervised(stream, tmp_path / "dagster", alerts=alerts) as supervision:
            with steady_load(kafka.bootstrap_servers, name) as places:
                eventually(
                    lambda: committed(stream, 2) is not None, 400, tell=lambda: supervision.said
                )
                (run,) = supervision.instance.get_runs(dg.RunsFilter(job_name="stream_restart"))
                assert run.tags[tags.REASON].startswith("degraded: batches take")
                assert receiver.told() == [], "nobody was needed"
                slow.write_text(str(WARN + 15))
                eventually(lambda: bool(receiver.told()), FAIL / 2, tell=lambda: supervision.said)
                status = stream.status()
                assert receiver.told()[0] == ("raised", "stream/lag_warning")
                assert status is not None
                assert (status.oldest_unread_age or 0.0) < FAIL
                slow.unlink()
            eventually(
                lambda: sum(stream.held().values()) >= len(places),
                300,
                tell=lambda: supervision.said,
            )
            assert supervision.failed is None
    stream.assert_holds(places)
