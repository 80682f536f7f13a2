"""The alerts' sensor on a real instance, telling a real receiver."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.freshness import FreshnessState, FreshnessStateChange
from pydantic import SecretStr

from ingest_platform.adapters.processes import this_process
from ingest_platform.components import tags
from ingest_platform.components.alert_tick import AlertTick
from ingest_platform.components.alerts import alert_sensor
from ingest_platform.model.contact import Contact
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport
from ingest_platform.spec import StorageEnvironment
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform_tests.alert_receivers import HttpReceiver, http_receiver
from ingest_platform_tests.dagster.conftest import QUIET, Deployment
from ingest_platform_tests.dagster.test_definitions import dg_cli
from ingest_platform_tests.factories import make_spec, make_status

pytestmark = QUIET

NO_BROKER = ErrorReport("KafkaUnreachableError", "no broker answered", "wait", retryable=True)
SENTINEL = "s3ntinel-value"


class Watch:
    """The sensor over simulated time."""

    def __init__(self, deployment: Deployment, receiver: HttpReceiver, spare: Path) -> None:
        self.deployment, self.receiver = deployment, receiver
        self.streams = [deployment.spec]
        self.now = datetime.now(UTC)
        self.cursor: str | None = None
        self.environ = {
            "ALERT_WEBHOOK_URL": f"{receiver.url}/{SENTINEL}",
            "INGEST_ALERTS_DIR": str(spare),
            "DATABASE_PASSWORD": "hunter22",
        }
        self.spec = parse_alerts({"channels": [{"type": "webhook"}]}, {}, where="defs.yaml")
        self.root = Path(deployment.spec.root)
        self.storage, self.supervised = StorageEnvironment(), True
        self.contact()

    def contact(self, **fields) -> None:
        """What the supervisor says from now on; all is well unless fields say otherwise."""
        self.said = {
            "stream": "clicks",
            "state": StreamState.RUNNING,
            "reason": "healthy",
            **fields,
        }

    def status(self, stream: str = "clicks", **fields) -> None:
        made = make_status(stream=stream, runs_at=this_process(), **fields)
        self.deployment.stores.status.write(made)

    def tick(self, after: float = 30) -> str:
        """Look again; returns what the UI shows."""
        self.now += timedelta(seconds=after)
        if self.supervised:
            self.deployment.stores.contact.tell(Contact(at=self.now.isoformat(), **self.said))
        tick = AlertTick(self.spec, self.streams, self.storage, self.environ, lambda: self.now)
        repository = self.deployment.defs.get_repository_def()
        result = tick.result(self.deployment.instance, repository.asset_graph, self.cursor)
        self.cursor = result.cursor
        assert result.skip_reason
        return result.skip_reason.skip_message or ""

    def settle(self) -> None:
        """Look until what is well has been so for long enough."""
        for _ in range(6):
            self.tick()


@pytest.fixture
def watch(deployment, tmp_path):
    with http_receiver() as receiver:
        yield Watch(deployment, receiver, tmp_path / "spare")


def freshness(instance: dg.DagsterInstance, state: FreshnessState, before: FreshnessState) -> None:
    """As the freshness daemon reports it."""
    change = FreshnessStateChange(
        key=dg.AssetKey(["clicks"]),
        new_state=state,
        previous_state=before,
        state_change_timestamp=time.time(),
    )
    instance._report_runless_asset_event(change)


def check(instance: dg.DagsterInstance, passed: bool, name: str = "ledger_balance") -> None:
    """As the supervisor reports it."""
    instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(["clicks"]),
            check_name=name,
            passed=passed,
            description="partition 0: a gap of 3 offsets",
        )
    )


def test_freshness_is_told_when_it_fails_and_when_it_is_back(watch):
    instance = watch.deployment.instance
    watch.status(behind={"clicks-0": 90}, oldest_unread_age=4000.0)
    freshness(instance, FreshnessState.WARN, FreshnessState.PASS)
    watch.tick()
    freshness(instance, FreshnessState.FAIL, FreshnessState.WARN)
    watch.tick()
    watch.tick()
    assert watch.receiver.told() == [
        ("raised", "clicks/lag_warning"),
        ("raised", "clicks/lag_failure"),
    ]
    alert = watch.receiver.taken[1].document["alerts"][0]
    assert alert["numbers"]["lag (s)"] == 4000
    assert alert["command"] == "ingest-platform status clicks"
    freshness(instance, FreshnessState.PASS, FreshnessState.FAIL)
    watch.settle()
    assert sorted(watch.receiver.told()[2:]) == [
        ("resolved", "clicks/lag_failure"),
        ("resolved", "clicks/lag_warning"),
    ]


def test_failed_check_is_told_and_resolved(watch):
    check(watch.deployment.instance, passed=False)
    watch.tick()
    (got,) = watch.receiver.taken
    (alert,) = got.document["alerts"]
    assert alert["key"].startswith("clicks/check_failed.clicks-ledger_balance")
    assert alert["cause"] == "partition 0: a gap of 3 offsets"
    check(watch.deployment.instance, passed=True)
    watch.settle()
    assert [status for status, _ in watch.receiver.told()] == ["raised", "resolved"]


def test_supervisor_that_gave_up_calls_a_person_with_the_remedy(watch):
    watch.contact(state=StreamState.FAILED, reason="batch 7 is truncated", alert=True,
                  remedy="bring the file back; then run the job clicks_start")  # fmt: skip
    assert "1 open: clicks/needs_person" in watch.tick()
    (got,) = watch.receiver.taken
    (alert,) = got.document["alerts"]
    assert alert["severity"] == "critical"
    assert alert["command"] == "bring the file back; then run the job clicks_start"
    assert alert["cause"] == "batch 7 is truncated"


def test_broker_that_is_away_is_one_alert_for_all_streams(watch):
    """Fault 10: two minutes of it, seen by many streams, whose drivers end again and again."""
    for name in ("orders", "views"):
        spec = make_spec(name=name, table={"path": f"{watch.root.parent}/{name}"})
        watch.streams.append(spec)
        watch.status(name, error=NO_BROKER)
    watch.status(state=StreamState.BACKOFF, error=NO_BROKER)
    for second in range(0, 120, 30):
        failing = second >= 60
        watch.contact(state=StreamState.BACKOFF, reason="failing", alert=failing,
                      error="KafkaUnreachableError")  # fmt: skip
        watch.tick()
    (got,) = watch.receiver.taken
    (alert,) = got.document["alerts"]
    assert alert["key"].startswith("_deployment/kafka_unreachable.")
    assert alert["numbers"] == {"streams": "clicks, orders, views"}
    watch.contact()
    for name in ("clicks", "orders", "views"):
        watch.status(name)
    watch.settle()
    assert [status for status, _ in watch.receiver.told()] == ["raised", "resolved"]


def test_short_absence_of_a_broker_is_not_told(watch):
    watch.status(error=NO_BROKER)
    watch.tick()
    watch.status()
    watch.settle()
    assert watch.receiver.told() == []


def test_silent_supervisor_is_told_once_and_resolved(watch):
    watch.tick()
    watch.supervised = False
    for _ in range(12):
        watch.tick()
    assert watch.receiver.told() == [("raised", "clicks/supervisor_silent")]
    watch.supervised = True
    watch.settle()
    assert watch.receiver.told()[1:] == [("resolved", "clicks/supervisor_silent")]


def test_daemon_that_comes_back_after_hours_does_not_blame_the_supervisors(watch):
    """They have not had their ticks yet, nor had it."""
    watch.tick()
    watch.supervised = False
    watch.tick(after=7200)
    watch.tick()
    assert watch.receiver.told() == []


def test_lost_cursor_and_second_tick_tell_nothing_twice(watch):
    check(watch.deployment.instance, passed=False)
    for _ in range(3):
        watch.cursor = None
        watch.tick()
    assert [status for status, _ in watch.receiver.told()] == ["raised"]


def test_webhook_that_is_down_delays_only_its_own_message(watch):
    """Fault 30: the alert waits in the outbox and arrives once."""
    watch.receiver.status = 503
    check(watch.deployment.instance, passed=False)
    assert "HTTP 503" in watch.tick()
    watch.tick()
    assert watch.receiver.told() == []
    watch.receiver.status = 200
    for _ in range(10):
        watch.tick()
    assert [status for status, _ in watch.receiver.told()] == ["raised"]


@pytest.mark.slow
@pytest.mark.fault
def test_webhook_that_takes_30_seconds_is_told_once_within_a_tick(watch):
    """Fault 30, in real time: 60 s are what Dagster gives a tick."""
    watch.receiver.delay = 30
    check(watch.deployment.instance, passed=False)
    began = time.monotonic()
    watch.tick()
    assert time.monotonic() - began < 55
    watch.receiver.delay = 0
    for _ in range(20):
        watch.tick()
    assert [status for status, _ in watch.receiver.told()] == ["raised"]
    assert len(watch.receiver.asked) == 1


def test_kill_after_the_outbox_was_written_loses_nothing(watch):
    """The cursor never moved, and the first attempt's process is gone."""
    check(watch.deployment.instance, passed=False)
    url = watch.environ.pop("ALERT_WEBHOOK_URL")
    watch.tick()
    watch.environ["ALERT_WEBHOOK_URL"] = url
    watch.cursor = None
    for _ in range(4):
        watch.tick()
    assert [status for status, _ in watch.receiver.told()] == ["raised"]


def test_storage_that_is_away_is_told_through_the_spare_outbox(watch):
    """When the state cannot be read, the alert about it cannot be stored there either."""
    here, watch.streams = watch.streams, [make_spec(table={"path": "s3a://lake/clicks"})]
    watch.storage = StorageEnvironment(
        endpoint_url="http://127.0.0.1:9", access_key_id="u", secret_access_key=SecretStr("p" * 8)
    )
    for _ in range(4):
        watch.tick()
    ((status, key),) = watch.receiver.told()
    assert status == "raised"
    assert key.startswith("_deployment/storage_unreachable.")
    watch.streams = here
    watch.settle()
    assert [status for status, _ in watch.receiver.told()] == ["raised", "resolved"]


def job(name: str, fails: bool, **run_tags: str) -> dg.JobDefinition:
    @dg.op(name=f"{name}_op")
    def op() -> None:
        if fails:
            raise dg.Failure("compaction met hunter22")

    @dg.job(name=name, tags={tags.STREAM: "clicks", **run_tags})
    def made() -> None:
        op()

    return made


def run(watch: Watch, name: str, fails: bool, **run_tags: str) -> None:
    job(name, fails, **run_tags).execute_in_process(
        instance=watch.deployment.instance, raise_on_error=False
    )
    watch.now = max(watch.now, datetime.now(UTC))


def test_failed_run_is_told_without_secrets_and_resolved_by_the_next(watch):
    run(watch, "clicks_compact", fails=True)
    watch.tick()
    (got,) = watch.receiver.taken
    (alert,) = got.document["alerts"]
    assert alert["key"] == "clicks/run_failed.clicks_compact"
    assert alert["cause"] == "compaction met ***"
    watch.settle()
    assert len(watch.receiver.told()) == 1
    run(watch, "clicks_compact", fails=False)
    watch.tick()
    assert [status for status, _ in watch.receiver.told()] == ["raised", "resolved"]


def test_failed_start_of_the_supervisor_is_its_own_to_tell(watch):
    """It tries again, with backoff, and says so when that goes on: no storm of failed runs."""
    run(watch, "clicks_start", True, **{tags.REASON: "never started"})
    watch.tick()
    assert watch.receiver.told() == []


def test_no_secret_is_left_anywhere(watch, tmp_path, caplog):
    caplog.set_level("DEBUG")
    watch.contact(state=StreamState.FAILED, reason="login with hunter22 failed", alert=True,
                  remedy=f"look at https://u:{SENTINEL}@host")  # fmt: skip
    shown = watch.tick()
    documents = "".join(
        path.read_text()
        for path in tmp_path.rglob("*")
        if path.is_file() and "alerts" in path.parts
    )
    sent = json.dumps(watch.receiver.taken[0].document)
    for text in (shown, watch.cursor, documents, sent, caplog.text):
        assert "hunter22" not in text
        assert SENTINEL not in text


def test_sensor_runs_as_dagster_evaluates_it(watch, monkeypatch):
    """Wired as the component wires it: resources, repository, environment."""
    monkeypatch.setenv("ALERT_WEBHOOK_URL", watch.receiver.url)
    monkeypatch.setenv("INGEST_ALERTS_DIR", watch.environ["INGEST_ALERTS_DIR"])
    check(watch.deployment.instance, passed=False)
    sensor = alert_sensor(watch.spec, watch.streams)
    defs = dg.Definitions.merge(watch.deployment.defs, dg.Definitions(sensors=[sensor]))
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    context = dg.build_sensor_context(
        instance=watch.deployment.instance,
        resources={"s3": watch.deployment.resources["s3"]},
        definitions=defs,
    )
    result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    assert [status for status, _ in watch.receiver.told()] == ["raised"]
    assert os.environ["ALERT_WEBHOOK_URL"] not in str(result.cursor)


@pytest.mark.slow
def test_scaffolded_alerts_are_valid_and_wrong_ones_are_shown(project):
    made = dg_cli(project, "scaffold", "defs", "ingest_platform.Alerts", "alerts")
    assert made.returncode == 0, made.stdout + made.stderr
    checked = dg_cli(project, "check", "defs", "--check-yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    file = project / "shop" / "defs" / "alerts" / "defs.yaml"
    file.write_text(file.read_text() + "      colour: red\n")
    wrong = dg_cli(project, "check", "yaml")
    assert wrong.returncode == 1
    assert "alerts/defs.yaml" in wrong.stdout
