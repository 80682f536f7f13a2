"""A stream on a local path that is to be repaired, and how to damage and mend it without a JVM."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.stores import Stores
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.model.account import repair_app_id
from ingest_platform.model.repair import RepairPlan, Step, Wishes
from ingest_platform.spec import StreamSpec
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.repair_planning import Patient, make_plan
from ingest_platform.steer.repairing import Repairing
from ingest_platform_tests.ledger_tables import (
    TOPIC,
    append,
    ledger,
    rows_of,
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
