"""Asset checks: told by the sensor, run by a person, few enough for a log that keeps all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from deltalake import CommitProperties, write_deltalake
from pyarrow import table

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import this_process
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.components.supervisor import Tick
from ingest_platform.model.status import BatchReport, Status
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.dagster.conftest import QUIET, Deployment, end
from ingest_platform_tests.factories import make_ledger, make_status

pytestmark = QUIET

ALL = {"lag", "quarantine_ratio", "ledger_balance", "driver_alive", "small_files"}


class Watched:
    """A stream over simulated time: a real table, real state, the sensor's own tick."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.now = datetime.now(UTC)
        self.cursor: str | None = None
        self.log = TableLog(deployment.spec.table.path, StorageEnvironment())
        self.beats = 0
        self.status: Status = make_status(
            runs_at=this_process(), started_at=(self.now - timedelta(minutes=1)).isoformat()
        )

    def commit(self, batch: int, *, quarantined: int = 0) -> None:
        """A batch of the stream, as the driver commits it."""
        ledger = make_ledger(batch, quarantined=quarantined)
        write_deltalake(
            self.deployment.spec.table.path,
            table({"id": [1]}),
            mode="append",
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": ledger.to_user_metadata()}
            ),
        )
        done = BatchReport(
            id=batch, seconds=1.0, rows=10 - quarantined, quarantined=quarantined,
            table_version=batch,
        )  # fmt: skip
        self.status = replace(self.status, recent=(*self.status.recent, done)[-60:])

    def tick(self, after: float = 15) -> list[object]:
        """Beat, look, and the events of it."""
        self.beats += 1
        self.now += timedelta(seconds=after)
        stores = self.deployment.stores
        stores.status.write(replace(self.status, updated_at=f"beat {self.beats}"))
        tick = Tick(self.deployment.spec, stores, LocalLauncher(), lambda: self.log, self.now)
        result = tick.result(self.deployment.instance, self.cursor)
        self.cursor = result.cursor
        return list(result.asset_events)


@pytest.fixture
def watched(deployment) -> Watched:
    return Watched(deployment)


def verdicts(events: list[object]) -> dict[str, dg.AssetCheckEvaluation]:
    return {e.check_name: e for e in events if isinstance(e, dg.AssetCheckEvaluation)}


def test_all_five_are_told_with_numbers_and_reason(watched):
    watched.commit(0, quarantined=2)
    first = verdicts(watched.tick())
    assert set(first) == ALL
    assert all(e.asset_key == dg.AssetKey(["clicks"]) for e in first.values())
    assert all(e.description and e.metadata for e in first.values())
    ratio = first["quarantine_ratio"]
    assert not ratio.passed
    assert ratio.severity is dg.AssetCheckSeverity.ERROR
    assert ratio.metadata["ratio"].value == 0.2
    assert first["ledger_balance"].passed
    assert first["small_files"].metadata["small_files"].value == 1


def test_change_is_told_at_the_next_look(watched):
    watched.commit(0)
    watched.tick()
    watched.status = replace(watched.status, oldest_unread_age=5000.0)
    changed = verdicts(watched.tick())
    assert set(changed) == {"lag"}
    assert not changed["lag"].passed
    assert verdicts(watched.tick()) == {}


def test_gap_is_told_within_a_report_period(watched):
    watched.commit(0)
    watched.tick()
    watched.commit(2)
    found = [e for _ in range(21) for e in verdicts(watched.tick()).values()]
    (balance,) = [e for e in found if e.check_name == "ledger_balance"]
    assert balance.severity is dg.AssetCheckSeverity.ERROR
    assert "offsets 10 to 19 are missing" in (balance.description or "")


def test_a_person_runs_them_from_the_ui(deployment, watched):
    """The same verdicts, without a sensor's memory; nothing is launched or changed by it."""
    watched.commit(0)
    deployment.stores.status.write(
        replace(watched.status, updated_at=datetime.now(UTC).isoformat())
    )
    result = deployment.run(dg.RunRequest(job_name="clicks_check"))
    assert result.success
    found = {e.check_name: e for e in result.get_asset_check_evaluations()}
    assert set(found) == ALL
    assert all(e.passed for e in found.values()), {n: e.description for n, e in found.items()}
    assert deployment.stores.lease.current() is None


def test_nothing_known_is_said_so(deployment):
    result = deployment.run(dg.RunRequest(job_name="clicks_check"))
    assert result.success
    for evaluation in result.get_asset_check_evaluations():
        assert not evaluation.passed
        assert evaluation.severity is dg.AssetCheckSeverity.WARN
        assert "nothing is known yet" in (evaluation.description or "")


@pytest.mark.slow
def test_events_of_a_day_are_at_most_300(watched):
    """With bad records in each report, the lag at its limit at times, and turnovers; the event log
    has no retention."""
    watched.deployment.run(dg.RunRequest(job_name="clicks_start"))
    restart = watched.deployment.run(dg.RunRequest(job_name="clicks_restart"))
    stored = len(watched.deployment.instance.all_logs(restart.run_id))
    driver = watched.deployment.stores.status.read("clicks")
    assert driver
    end(driver.runs_at)
    watched.status = replace(watched.status, generation=driver.generation)
    spec = watched.deployment.spec
    defaults = spec.model_dump(exclude={"report_every"}, by_alias=True)
    watched.deployment.spec = type(spec).model_validate(defaults)
    counted: Counter[str] = Counter()
    watched.commit(0)
    every = int(watched.deployment.spec.report_every.total_seconds())
    for number in range(24 * 3600 // every):  # each look with a report, the most that there can be
        watched.commit(number + 1, quarantined=1)
        late = number % 32 == 8
        watched.status = replace(watched.status, oldest_unread_age=1000.0 if late else 0.0)
        counted.update(type(e).__name__ for e in watched.tick(after=every))
    turnovers = timedelta(hours=24) / (0.9 * watched.deployment.spec.supervision.max_age)
    total = counted.total() + stored * turnovers
    assert total <= 300, (counted, stored)
    assert counted["AssetMaterialization"] >= 150
