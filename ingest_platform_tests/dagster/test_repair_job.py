"""The job `<name>_repair`: its plan is the run's metadata, and nothing happens unless told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from ingest_platform.components.repair_job import repair_job
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.maintain.repair.journal import RepairJournal
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.ledger_tables import append, ledger, rows_of
from ingest_platform_tests.topic_records import as_records, produce

pytestmark = QUIET


@dataclass
class Bench:
    """A stream whose checkpoint is lost, and its job."""

    stream: DeployedStream
    instance: dg.DagsterInstance
    logs: Path

    def run(self, **config: object) -> dg.ExecuteInProcessResult:
        name = self.stream.spec.name
        job = repair_job(self.stream.spec, self.stream.file)
        return job.execute_in_process(
            instance=self.instance,
            resources={"s3": S3Resource(), "launcher": LauncherResource(log_dir=str(self.logs))},
            run_config={"ops": {f"{name}_repair_stream": {"config": config}}},
            raise_on_error=False,
        )

    def metadata(self, **config: object) -> dict[str, object]:
        (output,) = [e for e in self.run(**config).all_events if e.is_successful_output]
        found = output.event_specific_data.metadata
        return {name: value.value for name, value in found.items()}


@pytest.fixture
def bench(
    kafka: KafkaServer,
    topic: Callable[..., str],
    deploy: Callable[..., DeployedStream],
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Bench]:
    name = topic(1)
    produce(kafka.bootstrap_servers, name, as_records([b"1"] * 12))
    stream = deploy(name, "id STRING", name="clicks")
    entry = ledger((0, 0, 10), topic=name)
    append(stream.spec.table.path, rows_of((0, 0, 10), topic=name), entry)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    for variable in [v for v in os.environ if v.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    return Bench(stream, instance, tmp_path / "logs")


def test_the_plan_is_the_runs_metadata_and_nothing_is_changed(bench: Bench) -> None:
    """A person looks at it before anything is touched."""
    found = bench.metadata()
    assert found["needed"]
    assert "- checkpoint: checkpoint is missing" in str(found["findings"])
    (topic,) = bench.stream.spec.source.all_topics
    assert found["read from"] == {topic: {"0": 10}}
    assert found["rows to remove"] == 0
    assert RepairJournal(bench.stream.objects, "clicks").numbers() == []


def test_a_wish_that_cannot_be_met_fails_the_run_with_its_remedy(bench: Bench) -> None:
    """Not a bug's trace: what to decide, and how to say it."""
    bench.stream.edit(source={"topic": "no-such-topic"})
    result = bench.run(apply=True)
    (failure,) = [e for e in result.all_events if e.is_step_failure]
    assert "remedy" in str(failure.step_failure_data.user_failure_data or failure.message) or (
        "remedy" in str(failure.event_specific_data)
    )
