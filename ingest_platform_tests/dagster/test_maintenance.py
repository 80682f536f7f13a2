"""Compaction and vacuum as Dagster runs them: lineage, schedules, one driver, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import psutil
import pytest

from ingest_platform.adapters.processes import this_process
from ingest_platform.components import tags
from ingest_platform.components.maintenance import Table, maintenance_definitions, rounds
from ingest_platform.components.maintenance_driver import MaintenanceDriver
from ingest_platform.components.resources import LauncherResource
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.dagster_home import REPOSITORY
from ingest_platform_tests.factories import make_spec
from ingest_platform_tests.fake_cluster import FakeCluster, fake_cluster
from ingest_platform_tests.lake_tables import LakeTable

# Dagster Pipes calls what Dagster itself has marked so.
pytestmark = [QUIET, pytest.mark.filterwarnings("ignore:AssetExecutionContext:DeprecationWarning")]


def table(name: str, **maintenance) -> Table:
    spec = make_spec(name=name, table={"path": f"/lake/{name}"}, maintenance=maintenance)
    return Table(spec, Path(f"/defs/{name}/defs.yaml"))


def specs_of(defs: dg.Definitions) -> dict[str, list[str]]:
    """Upstream assets by asset."""
    return {
        spec.key.to_user_string(): [dep.asset_key.to_user_string() for dep in spec.deps]
        for assets in defs.assets or ()
        if isinstance(assets, dg.AssetsDefinition)
        for spec in assets.specs
    }


def test_tables_of_one_lane_and_interval_share_a_run():
    """Hundreds of tables must not start hundreds of JVMs every quarter of an hour."""
    hourly = {"compaction": {"every": "1 hour"}}
    found = rounds([table("b"), table("a"), table("large", lane="large"), table("slow", **hourly)])
    assert {r.name: [t.spec.name for t in r.tables] for r in found} == {
        "shared_compaction_15m": ["a", "b"],
        "large_compaction_15m": ["large"],
        "shared_compaction_1h": ["slow"],
        "shared_vacuum_1h": ["a", "b", "slow"],
        "large_vacuum_1h": ["large"],
    }


def test_each_round_is_defined_by_one_component():
    """Dagster refuses two definitions of one asset."""
    tables = [table("b"), table("a"), table("large", lane="large")]
    parts = [maintenance_definitions(tables, of=t.spec.name) for t in tables]
    whole = maintenance_definitions(tables)
    names = sorted(a.op.name for part in parts for a in part.assets or ())
    assert names == sorted(a.op.name for a in whole.assets or ())


def test_lineage_goes_from_table_over_compaction_to_vacuum():
    specs = specs_of(maintenance_definitions([table("a")]))
    assert specs["a_compaction"] == ["a"]
    assert specs["a_vacuum"] == ["a_compaction"]


def test_a_disabled_table_keeps_its_asset_but_leaves_the_schedule():
    defs = maintenance_definitions([table("a"), table("b", compaction={"enabled": False})])
    [schedule] = [s for s in defs.schedules or () if "compaction" in s.name]
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert {"a_compaction", "b_compaction"} <= specs_of(defs).keys()


def definitions(tables: list[Table], folder: Path, **driver: list[str]) -> dg.Definitions:
    """What Dagster gets, with the resources; `driver` says what is started."""
    resources = {
        "launcher": LauncherResource(log_dir=str(folder / "logs")),
        "maintenance": MaintenanceDriver(**driver),
    }
    made = maintenance_definitions(tables)
    return dg.Definitions.merge(made, dg.Definitions(resources=resources))


@pytest.fixture
def tables(tmp_path) -> list[Table]:
    """Two tables; one has nothing to compact, the other's log is damaged."""
    files = []
    for name in ("broken", "sound"):
        file = tmp_path / "defs" / name / "defs.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(
            "type: ingest_platform.KafkaDeltaTable\nattributes:\n"
            f"  name: {name}\n  source: {{topic: t}}\n"
            f'  decode: {{schema: "id BIGINT"}}\n  table: {{path: {tmp_path}/lake/{name}}}\n'
        )
        files.append(Table(make_spec(name=name, table={"path": f"{tmp_path}/lake/{name}"}), file))
        lake = LakeTable(f"{tmp_path}/lake/{name}")
        for n in range(3):
            lake.append([n])
    (tmp_path / "lake" / "broken" / "_delta_log" / f"{1:020}.json").unlink()
    return files


@pytest.fixture
def defs(tables, tmp_path) -> dg.Definitions:
    return definitions(tables, tmp_path)


def test_a_run_serves_all_its_tables_and_starts_no_jvm_for_nothing(defs, instance, tmp_path):
    """The table that fails (fault 24) fails the run, after the other one had its turn."""
    job = defs.resolve_job_def("shared_compaction_15m")
    assert job.tags[tags.MAINTENANCE] == "shared"
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not result.success
    events = result.get_asset_materialization_events()
    [made] = [e.materialization for e in events if e.asset_key == dg.AssetKey("sound_compaction")]
    numbers = {k: v.value for k, v in made.metadata.items() if isinstance(v.value, int | float)}
    assert numbers["files_before"] == numbers["files_after"] == 3
    assert numbers["partitions_skipped"] == 1
    assert made.metadata["done"].value == "nothing to compact"
    assert made.metadata["skipped"].value == {"is still being written": 1} or made.metadata[
        "skipped"
    ].value == {"has too few small files": 1}
    log = (tmp_path / "logs" / "shared_compaction_15m" / "driver.log").read_text()
    assert "starting Spark" not in log
    assert "the table's log has a hole" in log


@pytest.fixture
def cluster(tmp_path, monkeypatch) -> Iterator[FakeCluster]:
    """Drivers are Jobs of this cluster."""
    (tmp_path / "cluster").mkdir()
    with fake_cluster(tmp_path / "cluster") as made:
        monkeypatch.setattr("ingest_platform.adapters.kubernetes.cluster.connect", made.connect)
        monkeypatch.setenv("INGEST_LAUNCHER", "kubernetes")
        monkeypatch.setenv("INGEST_IMAGE", "ingest:1")
        yield made


def test_a_driver_in_a_pod_reports_as_a_child_does(tables, cluster, instance, tmp_path):
    command = [sys.executable, "-W", "ignore", "-m", "ingest_platform.drivers.maintenance"]
    job = definitions(tables, tmp_path, pod_command=command).resolve_job_def(
        "shared_compaction_15m"
    )
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not result.success
    [told] = [e.materialization for e in result.get_asset_materialization_events()]
    assert told.asset_key == dg.AssetKey("sound_compaction")
    assert told.metadata["files_before"].value == 3
    [failure] = [e for e in result.all_events if e.is_step_failure]
    assert "ended with exit code 4" in str(failure.event_specific_data.error_display_string)
    assert "the table's log has a hole" in str(failure.event_specific_data.error_display_string)
    [(_, body)] = [(k, v) for k, v in cluster.objects.items() if k[0] == "jobs"]
    assert body["spec"]["activeDeadlineSeconds"] == 3720
    assert body["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {
        "memory": "3072Mi"
    }


def test_a_pod_that_takes_too_long_is_ended_with_its_job(tables, cluster, instance, tmp_path):
    """As does the interrupt of a run that someone cancels."""
    script = "import os, time; print('at work', os.getpid(), flush=True); time.sleep(600)"
    impatient = [
        Table(
            table.spec.model_copy(
                update={
                    "maintenance": table.spec.maintenance.model_copy(
                        update={"timeout": timedelta(seconds=3)}
                    )
                }
            ),
            table.path,
        )
        for table in tables
    ]
    made = definitions(impatient, tmp_path, pod_command=[sys.executable, "-c", script])
    job = made.resolve_job_def("shared_compaction_15m")
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    [failure] = [e for e in result.all_events if e.is_step_failure]
    assert "was ended after 0:00:03" in str(failure.event_specific_data.error_display_string)
    assert cluster.objects == {}
    [log] = (tmp_path / "cluster").glob("*/log")
    pid = int(log.read_text().split()[2])
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def tick(defs: dg.Definitions, instance: dg.DagsterInstance, late: timedelta):
    schedule = defs.resolve_schedule_def("shared_compaction_15m_schedule")
    context = dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime.now(UTC) - late,
        repository_def=defs.get_repository_def(),
    )
    return schedule(context)


def test_the_schedule_asks_for_one_run_after_downtime(defs, instance):
    """Dagster catches up on missed ticks, which would be a storm of runs for the same files."""
    on_time = tick(defs, instance, timedelta(seconds=20))
    assert isinstance(on_time, dg.RunRequest)
    assert {k.to_user_string() for k in on_time.asset_selection} == {
        "broken_compaction",
        "sound_compaction",
    }
    missed = tick(defs, instance, timedelta(minutes=40))
    assert isinstance(missed, dg.SkipReason)
    assert missed.skip_message == "missed 40 minutes ago"


def test_the_schedule_waits_for_a_run_that_is_not_done(defs, instance):
    """And not for one whose process is gone: it would wait for ever."""
    job = defs.resolve_job_def("shared_compaction_15m")
    here = this_process()
    worker = f"{here.host} {here.pid} {here.started_ticks:.0f}"
    run = instance.create_run_for_job(
        job, status=dg.DagsterRunStatus.STARTED, tags={tags.WORKER: worker}
    )
    waits = tick(defs, instance, timedelta(0))
    assert isinstance(waits, dg.SkipReason)
    assert run.run_id in waits.skip_message
    instance.add_run_tags(run.run_id, {tags.WORKER: f"{here.host} {here.pid} 1"})
    assert isinstance(tick(defs, instance, timedelta(0)), dg.RunRequest)


_RUN = """
import sys
from datetime import timedelta
from pathlib import Path
import dagster as dg
from ingest_platform.components.maintenance import Table, maintenance_definitions
from ingest_platform.components.maintenance_driver import MaintenanceDriver
from ingest_platform.components.resources import LauncherResource
from ingest_platform_tests.factories import make_spec

spec = make_spec()
rules = spec.maintenance.model_copy(update={"timeout": timedelta(seconds=float(sys.argv[3]))})
table = Table(spec.model_copy(update={"maintenance": rules}), Path("/none"))
defs = maintenance_definitions([table])
job = dg.Definitions.merge(defs, dg.Definitions(resources={
    "launcher": LauncherResource(log_dir=sys.argv[1]),
    "maintenance": MaintenanceDriver(command=[sys.executable, "-c", sys.argv[2]]),
})).resolve_job_def("shared_compaction_15m")
job.execute_in_process(raise_on_error=False)
"""

# A driver whose "JVM" does not hear of SIGTERM.
_DRIVER = """
import signal, subprocess, sys
jvm = subprocess.Popen([sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
print("jvm", jvm.pid, flush=True)
jvm.wait()
"""


@contextmanager
def run_with_driver(folder: Path, timeout: float) -> Iterator[tuple[subprocess.Popen, list]]:
    """A run in a process of its own, with its driver and the driver's JVM."""
    with (
        (folder / "run.log").open("wb") as said,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _RUN, str(folder), _DRIVER, str(timeout)],
            cwd=REPOSITORY,
            env=os.environ,
            stderr=said,
        ) as run,
    ):
        log = folder / "shared_compaction_15m" / "driver.log"
        deadline = time.monotonic() + 60
        while not (log.exists() and "jvm" in log.read_text()):
            assert time.monotonic() < deadline
            assert run.poll() is None
            time.sleep(0.1)
        jvm = psutil.Process(int(log.read_text().split()[1]))
        driver = jvm.parent()
        assert driver is not None
        yield run, [driver, jvm]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_cancelled_run_ends_its_driver_and_jvm(tmp_path, how):
    """Cancel in the UI is a signal to the run's process; so is a lost pod."""
    with run_with_driver(tmp_path, 600) as (run, [driver, jvm]):
        run.send_signal(how)
        run.wait(30)
        psutil.wait_procs([driver], timeout=10)
        assert not driver.is_running()
        if how == signal.SIGTERM:
            psutil.wait_procs([jvm], timeout=10)
            assert not jvm.is_running()
        else:
            jvm.kill()  # a real JVM ends by itself when its driver's end closes its standard input


def test_a_driver_that_takes_too_long_is_ended(tmp_path):
    """Also in a run from the UI's graph, which has no tag with a limit."""
    with run_with_driver(tmp_path, 3) as (run, processes):
        run.wait(60)
        assert psutil.wait_procs(processes, timeout=10)[1] == []
    assert "was ended after 0:00:03" in (tmp_path / "run.log").read_text()
