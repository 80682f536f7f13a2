"""Audits of small real tables, on a local path and on S3."""

from __future__ import annotations

import datetime as dt
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from ingest_platform.adapters.delta_tables import options_for
from ingest_platform.errors import UserError
from ingest_platform.maintain.audit.report import AuditReport, Kind
from ingest_platform.maintain.audit.run import AuditTarget, examine
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.ledger_tables import (
    append,
    ledger,
    quarantine_rows,
    rows_of,
    write_batches,
)


@dataclass
class Place:
    """A table's place and how to write there."""

    path: str
    storage: StorageEnvironment

    @property
    def options(self) -> dict[str, str] | None:
        return options_for(self.path, self.storage)

    def audit(self, **how) -> AuditReport:
        target = AuditTarget(self.path, f"{self.path}_quarantine", from_earliest=True)
        return examine(target, self.storage, dt.datetime.now(dt.UTC), **how).report


@pytest.fixture
def local(tmp_path) -> Place:
    return Place(str(tmp_path / "clicks"), StorageEnvironment())


@pytest.fixture(params=["local", "s3"])
def place(request, tmp_path) -> Place:
    if request.param == "local":
        return request.getfixturevalue("local")
    bucket = request.getfixturevalue("s3")
    storage = StorageEnvironment.from_env(bucket.environment())
    return Place(f"s3a://{bucket.bucket}/tables/clicks", storage)


def test_a_sound_stream_with_rejects_and_compaction_is_proven_three_times(place):
    """By its log, by its rows and by the brokers; compaction and other housekeeping between."""
    write_batches(place.path, [(0, 0, 50), (1, 3, 9)], [(0, 50, 90)], options=place.options)
    DeltaTable(place.path, storage_options=place.options).optimize.compact()
    append(f"{place.path}_quarantine", quarantine_rows([(1, 9), (0, 95)]), None, place.options)
    entry = ledger((0, 90, 95), (1, 9, 12), batch=2, quarantined=1)
    append(place.path, rows_of((0, 90, 95), (1, 10, 12)), entry, place.options)
    brokers = {("t", 0): BrokerRange(0, 100), ("t", 1): BrokerRange(3, 12)}

    report = place.audit(data=True, brokers=lambda: brokers)

    assert report.clean, report.errors
    ranges = [(p.partition, p.start, p.until, p.last_version) for p in report.proven]
    assert ranges == [(0, 0, 95, 3), (1, 3, 12, 3)]
    # The reject at offset 95 belongs to a batch that is not committed yet.
    assert (report.data["table_rows"], report.data["quarantine_rows"]) == (103 - 1 - 1 + 1 + 1, 1)
    assert report.lag == {"t-0": 5, "t-1": 0}


def test_a_deleted_log_entry_is_an_error_though_delta_still_reads_the_table(local):
    """Fault 24, in the middle and at the beginning."""
    write_batches(local.path, *([(0, 10 * v, 10 * v + 10)] for v in range(6)))
    DeltaTable(local.path).create_checkpoint()
    log = Path(local.path) / "_delta_log"
    (log / f"{3:020}.json").unlink()
    assert DeltaTable(local.path).to_pyarrow_table().num_rows == 60
    report = local.audit()
    assert {f.kind for f in report.errors} == {Kind.MISSING_ENTRY, Kind.GAP}
    assert report.errors[0].versions == (3,)

    for version in range(3):
        (log / f"{version:020}.json").unlink()
    errors = local.audit().errors
    assert [f.versions for f in errors] == [(0, 3)], "a young table's log cannot have expired"


def test_an_expired_log_is_clean_and_says_what_it_no_longer_proves(local):
    write_batches(local.path, *([(0, 10 * v, 10 * v + 10)] for v in range(6)))
    DeltaTable(local.path).create_checkpoint()
    for version in range(4):
        (Path(local.path) / "_delta_log" / f"{version:020}.json").unlink()
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=40)
    target = AuditTarget(local.path, f"{local.path}_q")
    report = examine(target, StorageEnvironment(), later).report
    assert report.clean, report.errors
    assert "versions 0 to 3" in report.unproved[0]
    assert [(p.start, p.until) for p in report.proven] == [(40, 60)]


def test_lost_and_doubled_rows_are_found_in_the_data_only(local):
    """The log is in order: only a scan can show what someone did to the rows."""
    append(local.path, rows_of((0, 0, 20), without=[(0, 7)]), ledger((0, 0, 20)))
    append(f"{local.path}_quarantine", quarantine_rows([(0, 3)]), None)
    assert local.audit().clean
    errors = local.audit(data=True).errors
    assert [(f.kind, f.start, f.until) for f in errors] == [
        (Kind.DATA_MISSING, 7, 8),
        (Kind.DATA_DOUBLED, 3, 4),
    ]


def test_a_users_delete_is_reported_and_its_rows_named(local):
    write_batches(local.path, [(0, 0, 20)])
    DeltaTable(local.path).delete("_kafka_offset = 4")
    assert [f.kind for f in local.audit().errors] == [Kind.NO_LEDGER]
    kinds = [f.kind for f in local.audit(data=True).errors]
    assert kinds == [Kind.NO_LEDGER, Kind.DATA_MISSING]


def test_a_restore_by_delta_is_understood(local):
    write_batches(local.path, [(0, 0, 20)], [(0, 20, 30)])
    DeltaTable(local.path).restore(0)
    append(local.path, rows_of((0, 20, 40)), ledger((0, 20, 40), session="b"))
    report = local.audit(data=True)
    assert report.clean, report.errors
    assert report.totals.undone == 1


def test_the_scan_stays_at_the_version_that_the_log_audit_saw(local, monkeypatch):
    """A running stream commits during an audit; that must look neither lost nor doubled."""
    write_batches(local.path, [(0, 0, 20)])

    def commit_meanwhile(done: int, total: int) -> None:
        if done == total:
            append(local.path, rows_of((0, 20, 30)), ledger((0, 20, 30), batch=1))

    report = local.audit(data=True, on_progress=commit_meanwhile)
    assert report.clean, report.errors
    assert report.data["table_rows"] == 20


def test_a_damaged_log_is_reported_even_if_the_data_cannot_be_scanned(local):
    write_batches(local.path, [(0, 0, 20)], [(0, 20, 30)], [(0, 30, 40)])
    (Path(local.path) / "_delta_log" / f"{1:020}.json").unlink()
    report = local.audit(data=True)
    assert report.errors[0].kind is Kind.MISSING_ENTRY
    assert report.unproved[-1].startswith("not scanned: ")


def test_no_table_and_no_coordinates_are_said_plainly(local):
    with pytest.raises(UserError, match="there is no Delta table"):
        local.audit()
    append(local.path, rows_of((0, 0, 3)).drop_columns(["_kafka_offset"]), ledger((0, 0, 3)))
    with pytest.raises(UserError, match="lacks _kafka_offset"):
        local.audit(data=True)
    shutil.rmtree(Path(local.path) / "_delta_log")
