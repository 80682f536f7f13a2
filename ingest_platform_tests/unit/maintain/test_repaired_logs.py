"""The audit of logs in which a repair has taken something out."""

from __future__ import annotations

from ingest_platform.maintain.audit.commits import Commit
from ingest_platform.maintain.audit.log_audit import audit_log
from ingest_platform.maintain.audit.report import Kind
from ingest_platform.maintain.audit.topic_audit import BrokerRange, audit_topic
from ingest_platform.model.offsets import OffsetRange, OffsetRanges
from ingest_platform_tests.ledger_tables import TOPIC, ledger
from ingest_platform_tests.unit.maintain.test_log_audit import kinds, repaired


def test_what_a_repair_took_out_may_come_again() -> None:
    """Else every repaired stream would look doubled for as long as its log is kept."""
    log = [
        Commit(0, ledger=ledger((0, 0, 10), batch=0)),
        Commit(1, ledger=ledger((0, 10, 20), batch=1, lost=3)),
        Commit(2, ledger=ledger((0, 15, 30), batch=2)),
        repaired(3, 0),
        Commit(4, ledger=ledger((0, 10, 30), batch=0, session="b")),
    ]
    report = audit_log(log)
    assert report.clean, report.findings
    assert Kind.REPAIRED in kinds(report)
    assert [(p.start, p.until) for p in report.proven] == [(0, 30)]
    assert (report.totals.batches, report.totals.undone) == (2, 2)


def test_only_the_accepted_part_of_a_gap_is_accepted() -> None:
    """A person accepts the offsets that were named to them, and not one more."""
    accepted = OffsetRanges((OffsetRange(TOPIC, 0, 10, 15),))
    log = [
        Commit(0, ledger=ledger((0, 0, 10), batch=0)),
        repaired(1, 0, accepted=accepted),
        Commit(2, ledger=ledger((0, 15, 20), batch=0, session="b")),
    ]
    report = audit_log(log)
    assert report.clean, report.findings
    assert Kind.ACCEPTED_GAP in kinds(report)
    log[2] = Commit(2, ledger=ledger((0, 17, 20), batch=0, session="b"))
    gaps = [f for f in audit_log(log).findings if f.kind is Kind.GAP]
    assert [(f.start, f.until) for f in gaps] == [(15, 17)]


def test_a_topic_made_anew_counts_from_its_beginning_again() -> None:
    """Its offsets mean other records now: neither doubled, nor joined with the old ones."""
    log = [
        Commit(0, ledger=ledger((0, 0, 10), batch=0)),
        repaired(1, 0, recreated=(TOPIC,)),
        Commit(2, ledger=ledger((0, 0, 4), batch=0, session="b")),
    ]
    report = audit_log(log)
    assert report.clean, report.findings
    assert [(p.start, p.until, p.incarnation) for p in report.proven] == [(0, 10, 0), (0, 4, 1)]
    broker = {(TOPIC, 0): BrokerRange(0, 6)}
    whole = audit_topic(report, broker, from_earliest=True)
    assert whole.clean, whole.findings
    assert whole.lag == {f"{TOPIC}-0": 2}


def test_a_restore_undoes_a_repair() -> None:
    """What the repair had accepted is a gap again, until the next repair says otherwise."""
    accepted = OffsetRanges((OffsetRange(TOPIC, 0, 10, 15),))
    log = [
        Commit(0, ledger=ledger((0, 0, 10), batch=0)),
        repaired(1, 0, accepted=accepted),
        Commit(2, operation="RESTORE", restored_to=0),
        Commit(3, ledger=ledger((0, 15, 20), batch=0, session="b")),
    ]
    gaps = [f for f in audit_log(log).findings if f.kind is Kind.GAP]
    assert [(f.start, f.until) for f in gaps] == [(10, 15)]
