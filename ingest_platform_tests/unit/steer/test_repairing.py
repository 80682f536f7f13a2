"""Plans and steps of repairs on real tables, without a JVM: delta-rs takes the rows out here.

The Spark job that does so in earnest is in the fault suite; all the rest is what runs there, too.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from ingest_platform.adapters.stores import Stores
from ingest_platform.errors import DataProblem, RepairUnderWayError
from ingest_platform.maintain.audit.report import Kind
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.model.control import Pause
from ingest_platform.model.repair import Step, Wishes
from ingest_platform.steer.repair_planning import make_plan
from ingest_platform_tests.factories import make_spec
from ingest_platform_tests.ledger_tables import (
    TOPIC,
    append,
    ledger,
    quarantine_rows,
    rows_of,
)
from ingest_platform_tests.unit.steer.patient import (
    Bench,
    KilledError,
    assert_whole,
    forget_checkpoint,
    go_on,
    held,
    planned,
    put_checkpoint,
    surgery,
)


def test_a_lost_checkpoint(patient: Bench) -> None:
    forget_checkpoint(patient)
    outcome = surgery(patient).begin(planned(patient))
    assert outcome.report.clean, outcome.report.findings
    go_on(patient, 3)
    assert_whole(patient, 40)


def test_a_replay_with_rejected_records(patient: Bench) -> None:
    """The checkpoint goes to the journal, the quarantine's rows beyond the cut go for good."""
    write_deltalake(patient.spec.table.quarantine, quarantine_rows([(0, 31), (1, 25)]))
    plan = planned(patient, to_version=1)
    assert plan.quarantine.rows == 2
    assert surgery(patient).begin(plan).report.clean
    assert patient.objects.list(patient.checkpoint_key) == []
    backup = patient.objects.list(f"{patient.journal.backup(1)}/offsets")
    assert [key.rpartition("/")[2] for key in backup] == ["0", "1", "2"]
    go_on(patient, 2, 3)
    assert_whole(patient, 40)
    assert make_plan(patient, Wishes(to_version=1)) is not None, "numbers go on"
    assert planned(patient, to_version=1).record.repair == 2


def test_an_accepted_gap_is_in_the_log(patient: Bench) -> None:
    for p in (0, 1):
        patient.brokers[TOPIC, p] = BrokerRange(33, 40)
    surgery(patient).begin(planned(patient, accept_gap=True))
    entry = ledger(*((p, 33, 40) for p in (0, 1)), session="b")
    append(patient.spec.table.path, rows_of(*((p, 33, 40) for p in (0, 1))), entry)
    report = patient.examine(data=True, topic=True).report
    assert report.clean, report.findings
    assert [f.kind for f in report.findings].count(Kind.ACCEPTED_GAP) == 2


def test_a_topic_made_anew_and_a_later_repair(patient: Bench) -> None:
    """Coordinates mean two records each from then on; the ledgers tell how many there must be."""
    patient.brokers.update({(TOPIC, p): BrokerRange(0, 20) for p in (0, 1)})
    assert surgery(patient).begin(planned(patient, topic_recreated=True)).report.clean
    go_on(patient, 0, 1)
    assert held(patient) == Counter(
        (p, o) for p in (0, 1) for n in (range(30), range(20)) for o in n
    )
    report = patient.examine(data=True, topic=True).report
    assert report.clean, report.findings
    DeltaTable(patient.spec.table.path).delete("_kafka_offset = 7")
    errors = patient.examine(data=True).report.errors
    assert Kind.DATA_MISSING in {f.kind for f in errors}


@pytest.mark.parametrize("step", list(Step))
def test_killed_after_a_step_and_called_again(patient: Bench, step: Step) -> None:
    """Fault 27: the second call ends in the same state as one that was never killed."""

    def reached(name: str) -> None:
        if name == step:
            raise KilledError

    killed = pytest.raises(KilledError) if step not in {Step.QUARANTINE} else nullcontext()
    with killed:
        surgery(patient, reached).begin(planned(patient, to_version=0))
    current = patient.journal.open_repair()
    if current:
        surgery(patient).go_on(current)
    assert patient.journal.open_repair() is None
    stores = Stores.of(patient.spec, patient.storage)
    assert stores.control.read().pause is None
    lease = stores.lease.current()
    assert lease
    assert lease.purpose == "released"
    records = [r for _, r in patient.examine(data=False).log.repairs()]
    assert [r.repair for r in records] == [1]
    go_on(patient, 1, 2, 3)
    assert_whole(patient, 40)


def test_killed_while_it_gives_the_stream_back(patient: Bench) -> None:
    """A driver may have started and committed already; that is no reason to stop half-way."""

    def reached(name: str) -> None:
        if name == Step.RETIRED:
            raise KilledError

    with pytest.raises(KilledError):
        surgery(patient, reached).begin(planned(patient, to_version=0))
    stores = Stores.of(patient.spec, patient.storage)
    stores.lease.hand_back("test", patient.now())
    stores.control.resume()
    go_on(patient, 1)
    put_checkpoint(patient, 0, session="b")
    current = patient.journal.open_repair()
    assert current
    assert surgery(patient).go_on(current).report.clean
    assert patient.objects.get(f"{patient.checkpoint_key}/metadata"), "it is the new session's"
    go_on(patient, 2, 3, start=1)
    assert_whole(patient, 40)


def test_ledgers_that_have_expired(patient: Bench) -> None:
    """An idle stream's log no longer has a batch: the rows' own coordinates say where it ends."""
    table = DeltaTable(patient.spec.table.path)
    table.optimize.compact()
    table.create_checkpoint()
    for version in range(3):
        Path(patient.spec.table.path, "_delta_log", f"{version:020}.json").unlink()
    forget_checkpoint(patient)
    put_checkpoint(patient, 2, session="x")
    old = replace(patient, now=lambda: datetime.now(UTC) + timedelta(days=60))
    plan = planned(old)
    assert plan.record.start.to_dict() == {TOPIC: {"0": 30, "1": 30}}
    assert (plan.undone, plan.blocked) == (0, ())
    entry = ledger((0, 30, 40), batch=3)
    append(patient.spec.table.path, rows_of((0, 30, 40)), entry)
    plan = planned(old)
    assert plan.record.start.to_dict() == {TOPIC: {"0": 40, "1": 30}}


def test_what_changed_since_the_plan_is_not_done(patient: Bench) -> None:
    """A person agreed to one gap; a wider one needs another word."""
    patient.brokers[TOPIC, 0] = BrokerRange(33, 40)
    plan = planned(patient, accept_gap=True)
    patient.brokers[TOPIC, 0] = BrokerRange(35, 40)
    with pytest.raises(DataProblem, match=r"things have changed.*accepted would be"):
        surgery(patient).begin(plan)
    assert patient.journal.open_repair() is None
    assert Stores.of(patient.spec, patient.storage).control.read().pause is None
    assert held(patient) == Counter((p, o) for p in (0, 1) for o in range(30))


def test_a_persons_pause_stays(patient: Bench) -> None:
    """They had a reason, which the repair does not know."""
    stores = Stores.of(patient.spec, patient.storage)
    stores.control.pause(Pause("ann", "2026-01-01", "broker move"))
    forget_checkpoint(patient)
    outcome = surgery(patient).begin(planned(patient))
    pause = stores.control.read().pause
    assert pause
    assert (pause.by, outcome.started) == ("ann", False)


def test_two_repairs_at_once(patient: Bench) -> None:
    """One begins it, the other is told; drivers are kept out by the lease."""
    plan = planned(patient, to_version=0)

    def second(name: str) -> None:
        if name == Step.STOPPED:
            with pytest.raises(RepairUnderWayError):
                surgery(patient).begin(plan)
            with pytest.raises(RepairUnderWayError, match="a repair by test"):
                Stores.of(patient.spec, patient.storage).lease.take("d", "stream", patient.now())
            raise KilledError

    with pytest.raises(KilledError):
        surgery(patient, second).begin(plan)
    surgery(patient).abandon(plan)
    assert make_plan(patient, Wishes()) is None
    assert Stores.of(patient.spec, patient.storage).lease.take("d", "stream", patient.now())


def test_what_has_taken_rows_out_can_only_be_finished(patient: Bench) -> None:
    def reached(name: str) -> None:
        if name == Step.REMOVING:
            raise KilledError

    with pytest.raises(KilledError):
        surgery(patient, reached).begin(planned(patient, to_version=0))
    current = patient.journal.open_repair()
    assert current
    with pytest.raises(DataProblem, match="may have taken rows out"):
        surgery(patient).abandon(current)


def test_a_lost_journal_does_not_repeat_a_number(patient: Bench) -> None:
    """The table's log knows it, too: a number that came twice would be taken for done."""
    forget_checkpoint(patient)
    surgery(patient).begin(planned(patient))
    go_on(patient, 3)
    for key in patient.objects.list("streams"):
        patient.objects.delete(key)
    assert planned(patient).record.repair == 2


def test_a_table_without_coordinates_is_restored(patient: Bench) -> None:
    """Nothing tells its rows apart; so nobody else may have written since."""
    columns = {"coordinates": False, "path": patient.spec.table.path}
    bare = replace(patient, spec=make_spec(source={"topic": TOPIC}, table=columns))
    assert planned(bare, to_version=0).removal == "restore"
    append(patient.spec.table.path, rows_of((0, 30, 31)), None)
    (reason,) = planned(bare, to_version=0).blocked
    assert "also undo what other writers did in versions 3" in reason
    assert "RESTORE the table to version 0 yourself" in reason
    DeltaTable(patient.spec.table.path).restore(0)
    plan = planned(bare)
    assert (plan.blocked, plan.undone) == ((), 0)
    assert surgery(bare).begin(plan).report.clean
    go_on(bare, 1, 2, 3)
    assert_whole(bare, 40)
