"""Plans and steps of repairs on real tables, without a JVM: delta-rs takes the rows out here.

The Spark job that does so in earnest is in the fault suite; all the rest is what runs there, too.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.stores import Stores
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.errors import DataProblem, LogDamagedError, RepairUnderWayError
from ingest_platform.maintain.audit.report import Kind
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.model.account import repair_app_id
from ingest_platform.model.control import Pause
from ingest_platform.model.repair import RepairPlan, Step, Symptom, Wishes
from ingest_platform.spec import StorageEnvironment, StreamSpec
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.repair_planning import Patient, make_plan
from ingest_platform.steer.repairing import Repairing
from ingest_platform_tests.factories import make_spec
from ingest_platform_tests.ledger_tables import (
    TOPIC,
    append,
    ledger,
    quarantine_rows,
    rows_of,
    write_batches,
)

SESSION = "a"


@dataclass(frozen=True)
class Bench(Patient):
    """A stream on a local path whose brokers are a mapping."""

    brokers: dict[tuple[str, int], BrokerRange] = field(default_factory=dict)

    def bounds(self) -> Mapping[tuple[str, int], BrokerRange]:
        return self.brokers


class KilledError(BaseException):
    """The process ends here."""


@pytest.fixture
def patient(tmp_path: Path) -> Bench:
    """Three batches of two partitions: 10, 20, 30 offsets each; the checkpoint agrees."""
    spec = make_spec(source={"topic": TOPIC}, table={"path": str(tmp_path / "lake" / "clicks")})
    write_batches(spec.table.path, *(batch(n) for n in range(3)))
    found = Bench(spec, StorageEnvironment(), {}, lambda: datetime.now(UTC))
    put_checkpoint(found, 3)
    found.brokers.update({(TOPIC, p): BrokerRange(0, 40) for p in (0, 1)})
    return found


def batch(number: int) -> list[tuple[int, int, int]]:
    return [(p, number * 10, number * 10 + 10) for p in (0, 1)]


def put_checkpoint(patient: Bench, batches: int, session: str = SESSION) -> None:
    """What Spark leaves after so many batches."""

    def put(name: str, text: str) -> None:
        patient.objects.put(f"{patient.checkpoint_key}/{name}", text.encode())

    put("metadata", f'{{"id":"{session}"}}')
    put("sources/0/0", f'\0v1\n{{"{TOPIC}":{{"0":0,"1":0}}}}')
    for number in range(batches):
        end = number * 10 + 10
        put(f"offsets/{number}", f'v1\n{{}}\n{{"{TOPIC}":{{"0":{end},"1":{end}}}}}')
        put(f"commits/{number}", "v1\n{}")


def forget_checkpoint(patient: Bench) -> None:
    for key in patient.objects.list(patient.checkpoint_key):
        patient.objects.delete(key)


def planned(patient: Bench, **wishes: object) -> RepairPlan:
    plan = make_plan(patient, Wishes(**wishes))
    assert plan is not None
    return plan


def take_out(patient: Bench) -> Callable[[int], None]:
    """As the Spark job does: rows beyond the cut go, and the log says so."""

    def run(_: int) -> None:
        plan = patient.journal.open_repair()
        assert plan
        record = plan.record
        beyond = " OR ".join(
            f"(_kafka_partition = {p} AND _kafka_offset >= {end})" for _, p, end in record.kept
        )
        metadata = {"userMetadata": record.to_user_metadata()}
        properties = CommitProperties(custom_metadata=metadata)
        mark = CommitProperties(
            custom_metadata=metadata,
            app_transactions=[Transaction(repair_app_id("clicks"), record.repair)],
        )
        for path in (patient.spec.table.quarantine, patient.spec.table.path):
            if DeltaTable.is_deltatable(path):
                DeltaTable(path).delete(beyond, commit_properties=properties)
        write_deltalake(patient.spec.table.path, rows_of(), mode="append", commit_properties=mark)
        patient.journal.done(record.repair, Step.QUARANTINE, patient.now())
        patient.journal.done(record.repair, Step.TABLE, patient.now())

    return run


def surgery(patient: Bench, reached: Callable[[str], None] = lambda _: None) -> Repairing:
    spec: StreamSpec = patient.spec
    reach = Reach(
        stores=Stores.of(spec, patient.storage),
        launcher=LocalLauncher(),
        launch=Launch(Path("/none"), spec.name, Path("/none"), {}),
        say=lambda _: None,
        now=patient.now,
        clock=time.monotonic,
        sleep=time.sleep,
    )
    return Repairing(patient, reach, take_out(patient), "test", 1, None, reached)


def go_on(patient: Bench, *batches: int, session: str = "b", start: int = 0) -> None:
    """The new session's batches, by the number of tens that they begin at."""
    for number, tens in enumerate(batches):
        entry = ledger(*batch(tens), batch=number + start, session=session)
        append(patient.spec.table.path, rows_of(*batch(tens)), entry)


def held(patient: Bench) -> Counter[tuple[int, int]]:
    rows = DeltaTable(patient.spec.table.path).to_pyarrow_table()
    places = zip(
        rows["_kafka_partition"].to_pylist(), rows["_kafka_offset"].to_pylist(), strict=True
    )
    return Counter(places)


def assert_whole(patient: Bench, until: int) -> None:
    """Each offset once, by an independent count and by the audit."""
    assert held(patient) == Counter((p, o) for p in (0, 1) for o in range(until))
    report = patient.examine(data=True, topic=True).report
    assert report.clean, report.findings


# --- plans ---------------------------------------------------------------------------------


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


# --- steps ---------------------------------------------------------------------------------


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
    assert "also undo what other writers" in planned(bare, to_version=0).blocked[0]
