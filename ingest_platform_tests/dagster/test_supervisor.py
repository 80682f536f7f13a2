"""Sensor ticks and start runs on a real instance, with real driver processes."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from deltalake import CommitProperties, write_deltalake
from pyarrow import table

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import started_ticks, this_process
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.components import tags
from ingest_platform.components.launch_history import launches, mark_worker
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.components.supervisor import Tick
from ingest_platform.model.control import Pause
from ingest_platform.model.launches import LaunchOutcome
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport, RunsAt, Status
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.dagster.conftest import QUIET, end
from ingest_platform_tests.factories import make_ledger, make_status
from ingest_platform_tests.stand_in_driver import COMMAND

pytestmark = QUIET

PAUSE = Pause("ada", "2026-01-31T12:00:00+00:00", "broker move")


def requested(result: dg.SensorResult) -> dg.RunRequest:
    """The one run that a tick asks for."""
    assert result.run_requests is not None
    (request,) = result.run_requests
    return request


def reason(result: dg.SensorResult) -> str:
    """Why a tick asks for no run."""
    assert not result.run_requests
    assert result.skip_reason is not None
    return result.skip_reason.skip_message or ""


def here(**overrides) -> Status:
    """A healthy driver's status; the driver is this very process."""
    return make_status(runs_at=this_process(log="/logs/clicks"), **overrides)


def test_missing_driver_is_requested_and_asking_again_changes_nothing(deployment):
    """Fault 8: the daemon may die after the request and before it saves the cursor."""
    first = requested(deployment.tick())
    assert first.tags[tags.REASON] == "never started"
    assert first.tags[tags.GENERATION] == "1"
    deployment.cursor = None
    assert requested(deployment.tick()).run_key == first.run_key


def test_start_run_launches_a_driver_and_ends_when_it_is_healthy(deployment):
    result = deployment.run(requested(deployment.tick()))
    assert result.success
    status = deployment.stores.status.read("clicks")
    assert status is not None
    assert (status.generation, status.state) == (1, StreamState.RUNNING)
    assert LocalLauncher().alive(status.runs_at)
    assert status.runs_at.log.endswith("/logs/clicks/driver.log")
    assert "healthy: generation 1" in reason(deployment.tick())


def test_dead_driver_is_replaced(deployment):
    deployment.run(requested(deployment.tick()))
    deployment.tick()
    status = deployment.stores.status.read("clicks")
    assert status is not None
    end(status.runs_at)
    dead = deployment.tick()
    assert "is dead: process" in (
        reason(dead) if dead.skip_reason else requested(dead).tags[tags.REASON]
    )
    # It lived for less than a minute, so backoff may hold the request back for two seconds.
    later = Tick(
        deployment.spec,
        deployment.stores,
        LocalLauncher(),
        lambda: TableLog(deployment.spec.table.path, StorageEnvironment()),
        datetime.now(UTC) + timedelta(seconds=3),
    )
    request = requested(later.result(deployment.instance, deployment.cursor))
    assert request.tags[tags.GENERATION] == "2"
    assert request.tags[tags.ATTEMPT] == "2"
    assert deployment.run(request).success
    successor = deployment.stores.status.read("clicks")
    assert successor is not None
    assert (successor.generation, successor.state) == (2, StreamState.RUNNING)
    assert [r.attempt for r in launches(deployment.instance, "clicks_start")] == [1, 2]


def test_second_start_run_finds_the_driver_running(deployment):
    """A person may press Launch while the sensor does: still one driver."""
    request = requested(deployment.tick())
    assert deployment.run(request).success
    assert deployment.run(request).success
    lease = deployment.stores.lease.current()
    assert lease is not None
    assert lease.generation == 1


def test_driver_that_ends_fails_the_run_with_its_last_words(deployment):
    result = deployment.run(requested(deployment.tick()), STAND_IN="exit")
    assert not result.success
    (failure,) = [e for e in result.all_events if e.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert "ended before it was healthy" in (data.description or "")
    assert "stand-in driver: exit" in (data.description or "")
    (record,) = launches(deployment.instance, "clicks_start")
    assert record.outcome is LaunchOutcome.FAILED
    assert reason(deployment.tick()).startswith("backoff: never started; launch 2 in a row")


@pytest.mark.parametrize("mode", ["fail", "refuse"])
def test_error_that_needs_a_person_is_told_and_not_retried(deployment, mode):
    """Whether the driver could still write its status or failed before it held the lease."""
    result = deployment.run(requested(deployment.tick()), STAND_IN=mode)
    (failure,) = [e for e in result.all_events if e.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert "TopicMissingError: no such topic\nremedy: create it" in (data.description or "")
    status = deployment.stores.status.read("clicks")
    if status:
        end(status.runs_at)
    assert reason(deployment.tick()) == (
        "needs a person: the driver ended with TopicMissingError: no such topic; "
        "create it; then run the job clicks_start"
    )
    byhand = deployment.run(dg.RunRequest())
    assert byhand.success
    assert "healthy" in reason(deployment.tick())


def test_slow_driver_fails_the_run_and_is_left_alone(deployment, tmp_path):
    """It may be catching up; killing it for that would never let it."""
    impatient = LauncherResource(command=list(COMMAND), log_dir=str(tmp_path), healthy_within=0)
    job = deployment.defs.resolve_job_def("clicks_start")
    result = job.execute_in_process(
        instance=deployment.instance,
        resources={"launcher": impatient, "s3": S3Resource()},
        raise_on_error=False,
    )
    (failure,) = [e for e in result.all_events if e.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert "not healthy after 0 s" in (data.description or "")
    runs_at = _launched(deployment.instance, result.run_id)
    assert LocalLauncher().alive(runs_at)
    end(runs_at)


def test_paused_stream_is_left_alone_by_sensor_and_run(deployment):
    request = requested(deployment.tick())
    deployment.stores.control.pause(PAUSE)
    assert reason(deployment.tick()).startswith("paused by ada since 2026-01-31")
    result = deployment.run(request)
    assert not result.success
    assert deployment.stores.lease.current() is None
    deployment.stores.control.resume()
    assert deployment.stores.status.read("clicks") is None


def test_launch_under_way_is_awaited(deployment):
    job = deployment.defs.resolve_job_def("clicks_start")
    run = deployment.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    mark_worker(deployment.instance, run.run_id)
    assert f"launching: run {run.run_id}" in reason(deployment.tick())


def test_run_whose_worker_is_gone_is_marked_failed(deployment):
    """After Ctrl-C of `dagster dev` in the middle of a launch, the stream must start again."""
    job = deployment.defs.resolve_job_def("clicks_start")
    gone = this_process()
    run = deployment.instance.create_run_for_job(
        job,
        status=dg.DagsterRunStatus.STARTED,
        tags={tags.WORKER: f"{gone.host} {gone.pid} {gone.started_ticks - 1:.0f}"},
    )
    deployment.tick()
    marked = deployment.instance.get_run_by_id(run.run_id)
    assert marked is not None
    assert marked.status is dg.DagsterRunStatus.FAILURE


def test_unreachable_storage_is_a_reason_and_not_a_failed_tick(deployment):
    spec = deployment.spec.model_copy(update={"state_path": "s3a://lake/_ingest"})
    storage = StorageEnvironment.model_validate(
        {"endpoint_url": "http://127.0.0.1:9", "access_key_id": "a", "secret_access_key": "b"}
    )
    tick = Tick(
        spec,
        type(deployment.stores).of(spec, storage),
        LocalLauncher(),
        lambda: TableLog(spec.table.path, storage),
        datetime.now(UTC),
    )
    assert "S3 did not answer" in reason(tick.result(deployment.instance, None))


class TestReports:
    """Materializations of a healthy stream, over simulated time and a real Delta table."""

    @pytest.fixture(autouse=True)
    def _setup(self, deployment):
        self.deployment = deployment
        self.now = datetime.now(UTC)
        self.cursor: str | None = None
        self.beat = 0
        self.status = here(started_at=(self.now - timedelta(minutes=1)).isoformat())

    def commit(self, batch: int, *, quarantined: int = 0) -> None:
        """A batch of the stream, as the driver commits it."""
        metadata = {"userMetadata": make_ledger(batch, quarantined=quarantined).to_user_metadata()}
        write_deltalake(
            self.deployment.spec.table.path,
            table({"id": [1]}),
            mode="append",
            commit_properties=CommitProperties(custom_metadata=metadata),
        )
        done = BatchReport(id=batch, seconds=1.0 + batch, table_version=batch)
        self.status = replace(self.status, recent=(*self.status.recent, done))

    def tick(self, after: float = 15) -> list[dg.AssetMaterialization]:
        """Beat once, then look, `after` seconds later."""
        self.beat += 1
        self.now += timedelta(seconds=after)
        self.deployment.stores.status.write(replace(self.status, updated_at=f"beat {self.beat}"))
        path = self.deployment.spec.table.path
        tick = Tick(
            self.deployment.spec,
            self.deployment.stores,
            LocalLauncher(),
            lambda: TableLog(path, StorageEnvironment()),
            self.now,
        )
        result = tick.result(self.deployment.instance, self.cursor)
        assert "healthy" in reason(result)
        self.cursor = result.cursor
        return [e for e in result.asset_events if isinstance(e, dg.AssetMaterialization)]

    def test_at_most_one_materialization_per_period(self):
        self.commit(0)
        assert self.tick() == []  # the first look cannot know whether the heart beats
        (first,) = self.tick()
        assert first.asset_key == dg.AssetKey(["clicks"])
        self.commit(1)
        assert [self.tick() for _ in range(19)] == [[]] * 19
        (second,) = self.tick()
        assert second.metadata["rows"].value == 10
        assert second.metadata["table_version"].value == 1
        assert second.metadata["batch_seconds_max"].value == 2.0

    def test_metadata_is_numeric_where_the_ui_plots(self):
        self.commit(0, quarantined=2)
        self.tick()
        made, quarantine = self.tick()
        numeric = {
            name
            for name, value in made.metadata.items()
            if isinstance(value, dg.IntMetadataValue | dg.FloatMetadataValue)
        }
        assert numeric == {
            *("rows", "quarantined", "skipped", "files", "bytes", "batches", "rows_per_second"),
            *("batch_seconds_p50", "batch_seconds_p95", "batch_seconds_max"),
            *("lag_records", "lag_seconds", "table_version"),
        }
        assert made.metadata["state"].value == "running"
        assert "healthy: generation 1" in str(made.metadata["reason"].value)
        assert made.metadata["offsets"].value == {"clicks": {"0": [0, 10]}}
        assert made.metadata["log"].value == "/logs/clicks"
        assert quarantine.asset_key == dg.AssetKey(["clicks_quarantine"])
        assert quarantine.metadata["rows"].value == 2
        assert quarantine.metadata["ratio"].value == 0.2

    def test_lag_beyond_the_warning_silences_reports(self):
        """So that freshness turns red for lag, though batches commit."""
        self.commit(0)
        self.status = replace(self.status, oldest_unread_age=901.0)
        assert [self.tick() for _ in range(3)] == [[]] * 3
        self.status = replace(self.status, oldest_unread_age=3.0)
        assert len(self.tick()) == 1

    def test_table_made_anew_is_reported_again(self, tmp_path):
        for batch in range(3):
            self.commit(batch)
        self.tick()
        self.tick()
        (tmp_path / "lake" / "clicks").rename(tmp_path / "lake" / "old")
        self.commit(0)
        (made,) = self.tick(after=300)
        assert made.metadata["table_version"].value == 0
        assert made.metadata["rows"].value == 10


def _launched(instance: dg.DagsterInstance, run_id: str) -> RunsAt:
    """The process that a run's log names."""
    messages = [entry.user_message for entry in instance.all_logs(run_id)]
    (pid,) = {
        int(found[1]) for text in messages if (found := re.search(r"Launched process (\d+)", text))
    }
    return replace(this_process(), pid=pid, started_ticks=started_ticks(pid) or 0.0)
