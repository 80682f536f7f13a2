"""The demo's verdict: each way in which a record can be lost or doubled must show in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest_platform.embedded import proof as module
from ingest_platform.embedded.proof import prove
from ingest_platform.embedded.receipts import Acknowledged, Receipts
from ingest_platform.maintain.audit.log_audit import LogAudit
from ingest_platform.maintain.audit.report import AuditReport, Finding, Kind
from ingest_platform.maintain.audit.run import Examined
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.spec import load_spec
from ingest_platform_tests.unit.cli.conftest import Deployment

WHOLE = Receipts({0: Acknowledged(0, 10, 10)}, failed=0, done=True)
GAP = Finding(Kind.GAP, "3 offsets are missing")


@pytest.fixture
def failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`failures(receipts, end=..., findings=..., unread=...)` of a topic with one partition."""
    spec = load_spec(Deployment(tmp_path).declare("clicks"), {})

    def judge(receipts: Receipts = WHOLE, *, end: int = 10, findings=(), unread: int = 0):
        held = {("t", 0): BrokerRange(0, end)}
        report = AuditReport(0, 1, findings=findings, lag={"t-0": unread})
        monkeypatch.setattr(module, "topic_bounds", lambda _source, _env: held)
        examined = Examined(report, LogAudit())
        monkeypatch.setattr(module, "examine", lambda *_args, **_options: examined)
        return prove(spec, receipts, {}).failures

    return judge


def test_all_is_well(failures):
    assert failures() == ()


def test_a_finding_of_the_audit_fails(failures):
    assert failures(findings=(GAP,)) == ("gap: 3 offsets are missing",)


def test_unread_records_fail(failures):
    assert failures(unread=4) == ("4 records were not ingested",)


def test_a_broker_that_lost_what_it_acknowledged_fails(failures):
    [failure] = failures(end=8)
    assert "up to 8, but acknowledged it up to 10" in failure


def test_a_record_that_was_acknowledged_twice_fails(failures):
    doubled = Receipts({0: Acknowledged(0, 10, 11)}, done=True)
    [failure] = failures(doubled)
    assert "11 records of t-0" in failure


def test_a_producer_without_its_last_word_fails(failures):
    [failure] = failures(Receipts(WHOLE.partitions))
    assert "not final" in failure


def test_refused_records_fail(failures):
    [failure] = failures(Receipts(WHOLE.partitions, failed=2, done=True))
    assert "2 records were not acknowledged" in failure
