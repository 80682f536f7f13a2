"""Plans of repairs on real tables: what is wrong, and what would be done about it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from ingest_platform.adapters.table_log import TableLog
from ingest_platform.errors import DataProblem, LogDamagedError
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.model.repair import Symptom, Wishes
from ingest_platform.steer.repair_planning import make_plan
from ingest_platform_tests.ledger_tables import (
    TOPIC,
    append,
    ledger,
    rows_of,
)
from ingest_platform_tests.unit.steer.patient import (
    SESSION,
    Bench,
    batch,
    forget_checkpoint,
    go_on,
    planned,
    surgery,
)


def test_nothing_is_wrong(patient: Bench) -> None:
    assert make_plan(patient, Wishes()) is None


@pytest.mark.parametrize("damage", ["lost", "torn", "rolled back"])
def test_a_checkpoint_that_is_not_what_it_was(patient: Bench, damage: str) -> None:
    """Nothing leaves the table: the next session goes on where it ends (faults 22, 23)."""
    if damage == "lost":
        forget_checkpoint(patient)
    elif damage == "torn":
        patient.objects.put(f"{patient.checkpoint_key}/offsets/2", b"v1\n{}")
    else:
        for name in ("offsets/2", "commits/2"):
            patient.objects.delete(f"{patient.checkpoint_key}/{name}")
    plan = planned(patient)
    assert [f.symptom for f in plan.findings] == [Symptom.CHECKPOINT]
    assert (plan.undone, plan.table.rows, plan.blocked) == (0, 0, ())
    assert plan.record.start.to_dict() == {TOPIC: {"0": 30, "1": 30}}
    assert plan.session == (None if damage == "lost" else SESSION)


def test_a_replay_from_a_time_or_a_version(patient: Bench) -> None:
    """Whole batches go: the ledgers count by batch, and must still balance."""
    by_version = planned(patient, to_version=0)
    assert (by_version.undone, by_version.table.rows, by_version.table.files) == (2, 40, 2)
    assert by_version.record.start.to_dict() == {TOPIC: {"0": 10, "1": 10}}
    last = DeltaTable(patient.spec.table.path).history(1)[0]["timestamp"]
    since = datetime.fromtimestamp(last / 1000, UTC).isoformat()
    by_time = planned(patient, since=since)
    assert by_time.record.kept_version == 1
    assert planned(patient, since="2100-01-01T00:00:00Z").undone == 0


def test_a_version_that_was_undone_is_no_state_to_go_back_to(patient: Bench) -> None:
    """Its batches would count again, though their rows are gone."""
    DeltaTable(patient.spec.table.path).restore(0)
    go_on(patient, 1, 2, start=3, session=SESSION)
    plan = planned(patient, to_version=2)
    assert (plan.record.kept_version, plan.undone) == (0, 2)
    assert plan.record.start.to_dict() == {TOPIC: {"0": 10, "1": 10}}


@pytest.mark.parametrize(
    ("entry", "kept_version"),
    [
        (ledger((0, 15, 20), batch=3), 2),
        (ledger((0, 35, 40), batch=3), 2),
        (ledger((0, 30, 40), batch=3, lost=2), 2),
        (ledger((0, 30, 40), batch=1), 2),
    ],
    ids=["overlap", "gap", "imbalance", "batch order"],
)
def test_ledgers_that_are_wrong(patient: Bench, entry: object, kept_version: int) -> None:
    """The cut is before the batch that does not fit, not before the ones it does not fit to."""
    append(patient.spec.table.path, rows_of(), entry)
    plan = planned(patient)
    assert Symptom.LEDGER in {f.symptom for f in plan.findings}
    assert (plan.record.kept_version, plan.undone) == (kept_version, 1)


def test_a_batch_that_came_twice_is_restored_away(patient: Bench) -> None:
    """Its rows have the offsets of good ones: no coordinate tells them apart."""
    append(patient.spec.table.path, rows_of(*batch(0)), ledger(*batch(0), session="x"))
    plan = planned(patient)
    assert (plan.record.kept_version, plan.removal) == (2, "restore")
    append(patient.spec.table.path, rows_of((0, 90, 91)), None)
    plan = planned(patient)
    assert (plan.record.kept_version, plan.removal) == (-1, "delete"), "others wrote since"
    assert plan.record.start.to_dict() == {TOPIC: {"0": 0, "1": 0}}


def test_doubled_rows_without_a_ledger_show_in_the_data_only(patient: Bench) -> None:
    """A hand-made INSERT: the cut is before the first batch that holds one of its offsets."""
    append(patient.spec.table.path, rows_of((0, 12, 14)), None)
    assert make_plan(patient, Wishes()) is None
    plan = planned(patient, data=True)
    assert {f.symptom for f in plan.findings} == {Symptom.DATA}
    assert plan.record.kept_version == 0
    assert plan.warnings


def test_a_gap_is_told_exactly_and_needs_a_word(patient: Bench) -> None:
    """Retention passed the stream (fault 11)."""
    patient.brokers[TOPIC, 1] = BrokerRange(33, 40)
    plan = planned(patient)
    assert plan.record.accepted.to_ledger() == {TOPIC: {"1": [30, 33]}}
    assert "[30, 33)" in plan.blocked[0]
    with pytest.raises(DataProblem, match="--accept-gap"):
        surgery(patient).begin(plan)
    assert patient.journal.numbers() == []
    assert planned(patient, accept_gap=True).blocked == ()


def test_rows_that_could_not_be_read_again_are_not_removed_silently(patient: Bench) -> None:
    """A replay from too long ago would lose what the table has and the topic has not."""
    patient.brokers[TOPIC, 0] = BrokerRange(15, 40)
    plan = planned(patient, to_version=0)
    assert "their rows would be removed" in plan.blocked[0]
    assert "[10, 15)" in plan.blocked[0]


def test_a_topic_that_is_shorter_than_what_was_read(patient: Bench) -> None:
    """Made anew, or truncated: only a person knows (fault 12)."""
    patient.brokers.update({(TOPIC, p): BrokerRange(0, 5) for p in (0, 1)})
    assert "--topic-recreated" in planned(patient).blocked[0]
    plan = planned(patient, topic_recreated=True)
    assert (plan.blocked, plan.record.recreated) == ((), (TOPIC,))
    assert plan.record.start.to_dict() == {TOPIC: {"0": 0, "1": 0}}


def test_a_hole_in_the_log_is_not_gone_over(patient: Bench) -> None:
    """Nobody knows what the missing entry held (fault 24)."""
    forget_checkpoint(patient)
    trace = Path(patient.spec.table.path, "_delta_log", f"{7:020}.crc")
    trace.write_text("{}")
    with pytest.raises(LogDamagedError, match="versions 3 to 7 are missing"):
        planned(patient)
    with pytest.raises(LogDamagedError, match="version 7 was committed"):
        TableLog(patient.spec.table.path, patient.storage).version()
