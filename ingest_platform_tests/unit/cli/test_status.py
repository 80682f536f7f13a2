"""`ingest-platform status`: what it says of streams in every condition."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable

from ingest_platform.adapters.control_store import ControlStore
from ingest_platform.adapters.delta_tables import storage_options
from ingest_platform.adapters.housekeeping_store import HousekeepingStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.processes import this_process
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.adapters.table_log import TableSize
from ingest_platform.cli.overview import Sighting, overview
from ingest_platform.model.control import Control, Pause
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import AutoCompactionReport, BatchReport, ErrorReport, Status
from ingest_platform.spec import StorageEnvironment, load_spec
from ingest_platform_tests.fault_proxy import FaultProxy
from ingest_platform_tests.ledger_tables import write_batches

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
RUNNING = Status(
    stream="clicks",
    session="u",
    generation=3,
    state=StreamState.RUNNING,
    started_at="2026-11-01T10:00:00+00:00",
    updated_at="2026-11-01T11:59:55+00:00",
    last_batch=BatchReport(id=9, rows=1000, seconds=1.5),
    totals={"rows": 999, "quarantined": 1},
    auto_compaction=AutoCompactionReport(completed=4, yielded={"at_dequeue": 1, "conflict": 1}),
    behind={"t-0": 30, "t-1": 12},
    oldest_unread_age=20.0,
    input_rows_per_second=100.0,
    processed_rows_per_second=400.0,
)

CHECKSUM = (
    b'{"tableSizeBytes":9,"numFiles":30,"fileSizeHistogram":{"sortedBinBoundaries":[0,33554432],'
    b'"fileCounts":[20,10]},"allFiles":[]}'
)


@pytest.fixture
def spec(deployment):
    return load_spec(deployment.declare("clicks"), {})


def test_a_running_stream(spec):
    line = overview(spec, Sighting(RUNNING, alive=True, files=TableSize(7, 20, 5000, 19)), NOW)
    assert (line.state, line.since) == (StreamState.RUNNING, RUNNING.started_at)
    assert (line.lag_records, line.lag_seconds, line.freshness) == (42, 25.0, "fresh")
    assert (line.rows_in, line.rows_out) == (100.0, 400.0)
    assert (line.table_version, line.files, line.small_files) == (7, 20, 19)
    assert line.quarantine_ratio == 0.001
    assert line.trouble is None


@pytest.mark.parametrize(
    ("seen", "state", "reason"),
    [
        (Sighting(), StreamState.STOPPED, "never started"),
        (Sighting(RUNNING, alive=False), StreamState.BACKOFF, "generation 3 on  is dead"),
        (
            Sighting(replace(RUNNING, updated_at="2026-11-01T11:50:00+00:00")),
            StreamState.BACKOFF,
            "generation 3 on  has not been heard of for 10 min",
        ),
        (
            Sighting(
                replace(
                    RUNNING,
                    state=StreamState.FAILED,
                    error=ErrorReport("OffsetsLostError", "retention passed", "repair"),
                )
            ),
            StreamState.FAILED,
            "the driver ended with OffsetsLostError: retention passed",
        ),
        (
            Sighting(
                replace(RUNNING, state=StreamState.STOPPED),
                Control(Pause("ann", "2026-11-01", "migration")),
            ),
            StreamState.STOPPED,
            "paused by ann since 2026-11-01 (migration)",
        ),
        (Sighting(RUNNING, Control(Pause("ann", "2026-11-01"))), StreamState.DRAINING, "paused"),
    ],
)
def test_each_condition_has_its_state_and_reason(spec, seen, state, reason):
    """The reason is what an operator acts on; a dead driver must not look like a running one."""
    line = overview(spec, seen, NOW)
    assert line.state is state
    assert line.reason.startswith(reason)


@pytest.mark.parametrize(
    ("age", "freshness"), [(None, "unknown"), (0.0, "fresh"), (900.0, "warn"), (3600.0, "fail")]
)
def test_freshness_follows_the_specs_limits(spec, age, freshness):
    assert overview(spec, Sighting(replace(RUNNING, oldest_unread_age=age)), NOW).freshness == (
        freshness
    )


def test_a_silent_drivers_lag_grows_with_its_silence(spec):
    silent = replace(RUNNING, updated_at="2026-11-01T11:00:00+00:00")
    line = overview(spec, Sighting(silent), NOW)
    assert line.lag_seconds == 20.0 + 3600
    assert (line.rows_in, line.rows_out, line.freshness) == (None, None, "fail")


# --- the command ---------------------------------------------------------------------------


@pytest.fixture
def streams(deployment):
    """One running stream with a table, one that was never started."""
    deployment.declare("clicks")
    deployment.declare("orders")
    write_batches(deployment.table("clicks"), [(0, 0, 5)], [(0, 5, 9)])
    now = datetime.now(UTC)
    status = replace(
        RUNNING,
        started_at=(now - timedelta(hours=1)).isoformat(),
        updated_at=now.isoformat(),
        runs_at=this_process("/logs/driver.log"),
    )
    objects = object_store(str(deployment.root / "tables" / "_ingest"), StorageEnvironment())
    StatusStore(objects).write(status)
    ControlStore(objects, "orders").pause(Pause("ann", "2026-11-01", "not yet"))
    return deployment


def test_one_line_per_stream(run, streams):
    result = run("status")
    assert result.exit_code == 0
    header, clicks, orders = (line.split() for line in result.stdout.splitlines())
    assert header[:3] == ["stream", "state", "since"]
    assert clicks[:2] == ["clicks", "running"]
    assert orders[:2] == ["orders", "stopped"]
    assert "paused by ann since 2026-11-01 (not yet)" in result.stdout


def test_json_has_every_figure(run, streams):
    result = run("status", "--json")
    document = json.loads(result.stdout)
    clicks, orders = document["streams"]
    assert (clicks["state"], clicks["lag_records"], clicks["files"]) == ("running", 42, 2)
    assert (clicks["small_files"], clicks["table_version"]) == (2, 1)
    assert clicks["last_batch"]["rows"] == 1000
    assert (orders["state"], orders["files"], orders["lag_seconds"]) == ("stopped", None, None)
    assert document["broken"] == []


def test_one_name_gives_all_details(run, streams):
    result = run("status", "clicks")
    assert result.exit_code == 0
    assert "/logs/driver.log" in result.stdout
    assert "generation  " in result.stdout.replace("      ", "  ")
    assert "last compaction" in result.stdout
    assert "async: 4 completed, 2 yielded to DML" in result.stdout


def test_a_broken_spec_is_reported_beside_the_others(run, streams):
    streams.declare("broken", extra="  nonsense: 1\n")
    result = run("status")
    assert result.exit_code == 2
    assert "clicks" in result.stdout
    assert "nonsense" in result.stderr


def test_a_torn_status_document_is_none_at_all(run, streams):
    """Readers tolerate it: the next one, seconds later, will be whole."""
    path = streams.root / "tables" / "_ingest" / "streams" / "clicks" / "status.json"
    path.write_text(path.read_text()[:40])
    result = run("status", "--json")
    assert json.loads(result.stdout)["streams"][0]["reason"] == "never started"


def test_storage_that_does_not_answer_is_named_in_the_line(run, streams, monkeypatch):
    """One bad bucket must not take the view of all other streams away."""
    (streams.root / "tables" / "clicks" / "_delta_log" / f"{0:020}.json").write_text("torn")
    result = run("status", "--json")
    assert result.exit_code == 0
    clicks, orders = json.loads(result.stdout)["streams"]
    assert clicks["state"] == "running"
    assert "cannot be read" in clicks["trouble"]
    assert orders["trouble"] is None


def test_an_empty_deployment_says_how_to_make_a_stream(run, deployment):
    result = run("status")
    assert result.exit_code == 0
    assert "dg scaffold defs" in result.stdout


def test_maintenance_shows_at_a_glance_and_by_the_tables_history_in_detail(run, deployment):
    """The overview reads what maintenance runs noted; one stream's details also its log."""
    spec = load_spec(deployment.declare("clicks"), {})
    write_batches(spec.table.path, [(0, 0, 5)], [(0, 5, 9)])
    noted = HousekeepingStore(object_store(spec.root, StorageEnvironment.from_env({})), "clicks")
    noted.ran("vacuum", NOW)
    noted.ran("compact", datetime(2020, 1, 1, tzinfo=UTC))
    (line,) = json.loads(run("status", "--json").stdout)["streams"]
    assert (line["vacuumed_at"], line["compacted_at"]) == (
        NOW.isoformat(),
        "2020-01-01T00:00:00+00:00",
    )
    DeltaTable(spec.table.path).optimize.compact()
    (line,) = json.loads(run("status", "clicks", "--json").stdout)["streams"]
    assert line["compacted_at"] > "2026"


def test_a_stream_on_s3_takes_seven_requests_however_long_its_log(run, deployment, s3, monkeypatch):
    """Five small documents, a listing of what is new in the log, and the newest checksum."""
    for name in ("clicks", "orders"):
        spec = deployment.declare(name)
        table = f"s3a://{s3.bucket}/tables/{name}"
        spec.write_text(spec.read_text().replace(deployment.table(name), table))
        storage = StorageEnvironment.from_env(s3.environment())
        batches = ([(0, n, n + 1)] for n in range(4))
        write_batches(table, *batches, options=storage_options(storage))
        log = object_store(f"{table}/_delta_log", storage)
        log.put(f"{3:020}.crc", CHECKSUM)
        status = replace(RUNNING, stream=name, table_version=1)
        StatusStore(object_store(f"s3a://{s3.bucket}/tables/_ingest", storage)).write(status)
    with FaultProxy(s3.endpoint) as proxy:
        for variable, value in s3.environment(proxy.endpoint).items():
            monkeypatch.setenv(variable, value)
        result = run("status", "--json")
    lines = json.loads(result.stdout)["streams"]
    assert [(s["table_version"], s["files"], s["small_files"]) for s in lines] == [(3, 30, 20)] * 2
    assert [s["trouble"] for s in lines] == [None, None]
    assert len(proxy.requests) == 2 * 7, list(proxy.requests)
