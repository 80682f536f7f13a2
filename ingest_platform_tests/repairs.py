"""Repairs of deployed streams, in the session that the tests share, or killed at a step."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.stores import Stores
from ingest_platform.drivers.repair import remove
from ingest_platform.model.repair import RepairPlan, Wishes
from ingest_platform.model.status import RunsAt
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.repair_planning import Patient, make_plan
from ingest_platform.steer.repairing import Outcome, Repairing
from ingest_platform_tests.deployed_stream import DeployedStream

Reached = Callable[[str], None]


class NoDrivers(LocalLauncher):
    """The launcher where drivers ran inside of a test's own process, which must not be ended."""

    def alive(self, runs_at: RunsAt) -> bool | None:
        """They are over."""
        return False

    def kill(self, runs_at: RunsAt) -> bool:
        """Nothing is left of them."""
        return False


class CutOffError(RuntimeError):
    """Ends a driver between the quarantine's commit and the table's."""


def patient_of(stream: DeployedStream) -> Patient:
    """The stream, as planning sees it."""
    return Patient(stream.spec, stream.storage, stream.environ, lambda: datetime.now(UTC))


def plan_of(stream: DeployedStream, **wishes: object) -> RepairPlan | None:
    """The plan of its repair."""
    return make_plan(patient_of(stream), Wishes(**wishes))


def repairing(
    stream: DeployedStream, take_out: Callable[[int], None], reached: Reached = lambda _: None
) -> Repairing:
    """The repair of a stream that has no driver, and gets none."""
    launch = Launch(stream.file, stream.spec.name, stream.file.parent / "logs", stream.environ)
    reach = Reach(
        stores=Stores.of(stream.spec, stream.storage),
        launcher=NoDrivers(),
        launch=launch,
        say=lambda _: None,
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        sleep=time.sleep,
    )
    holder = f"test:{os.getpid()}"
    return Repairing(patient_of(stream), reach, take_out, holder, 30, None, reached)


def removal(stream: DeployedStream, spark: SparkSession) -> Callable[[int], None]:
    """The Spark job, in the session that the tests share."""
    return lambda generation: remove(spark, stream.spec, stream.environ, generation)


def repair(stream: DeployedStream, spark: SparkSession, **wishes: object) -> Outcome:
    """Plan and apply, all in this process; the audit afterwards is clean."""

    surgery, plan = repairing(stream, removal(stream, spark)), plan_of(stream, **wishes)
    assert plan is not None
    current = surgery.patient.journal.open_repair()
    outcome = surgery.go_on(current) if current else surgery.begin(plan)
    assert outcome.report.clean, outcome.report.findings
    assert stream.objects.list(stream.checkpoint) == []
    return outcome


def kill_at(moment: str) -> Reached:
    """Ends this very process by SIGKILL when `moment` is reached."""

    def reached(name: str) -> None:
        if name == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached
