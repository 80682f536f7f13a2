"""Carry out a repair: six steps, each recorded when it is over, each harmless when repeated.

A kill after any of them, then the same call again, ends in the same state: the journal says which
steps are over, and the table's log whether its rows were taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ingest_platform.adapters.table_history import newest_account
from ingest_platform.adapters.table_log import TableLog
from ingest_platform.errors import DataProblem, RetryableFault
from ingest_platform.maintain.audit.report import AuditReport
from ingest_platform.maintain.repair.retire import retire
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.control import Pause
from ingest_platform.model.lease import Lease
from ingest_platform.model.repair import RepairPlan, Step
from ingest_platform.steer.ending import StillThere, drain, stop
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.repair_planning import Patient, make_plan
from ingest_platform.steer.starting import NotStarted, start


@dataclass(frozen=True)
class Outcome:
    """A repair that came to its end.

    Attributes:
        plan: What was carried out.
        report: The audit afterwards, of log, data and topic.
        started: A driver runs.
        not_started: Why none does, if one was to be started.
    """

    plan: RepairPlan
    report: AuditReport
    started: bool = False
    not_started: NotStarted | None = None


@dataclass(frozen=True)
class Repairing:
    """One stream's repair.

    Attributes:
        patient: The stream.
        reach: Its driver.
        remove: Runs the Spark job under a lease generation; raises what went wrong there.
        holder: Who repairs, for the lease: `host:pid`.
        drain_within: Seconds that a running driver has to finish its batch.
        start_within: Seconds that the new session has to become healthy; None: start none.
        reached: Told of each step that is over, for fault tests.
    """

    patient: Patient
    reach: Reach
    remove: Callable[[int], None]
    holder: str
    drain_within: float
    start_within: float | None
    reached: Callable[[str], None] = lambda _: None

    def begin(self, plan: RepairPlan) -> Outcome:
        """Open the repair that a person agreed to, and carry it out.

        Raises:
            DataProblem: The plan is blocked, or things have changed since it was made.
            RepairUnderWayError: Someone else has just begun one.
            IngestError: A step failed; `go_on` takes it up where it was left.
        """
        if plan.blocked:
            raise blocked(plan)
        self.patient.journal.begin(plan)
        return self.go_on(plan)

    def go_on(self, plan: RepairPlan) -> Outcome:
        """Carry out what is left of an open repair."""
        if not self._over(plan, Step.RELEASED):
            lease = self._stop(plan)
            plan = self._settle(plan)
            self._take_out(plan, lease)
            self._retire(plan)
            self._release(plan)
        return self._verify(plan)

    def abandon(self, plan: RepairPlan) -> None:
        """Give a repair up that has changed nothing yet.

        Raises:
            DataProblem: It may have: it can only be finished.
        """
        if self._over(plan, Step.REMOVING):
            raise DataProblem(
                f"repair {plan.record.repair} may have taken rows out already",
                where=self.patient.journal.path,
                remedy=f"finish it: ingest-platform repair apply {self.patient.spec.name}",
            )
        self._give_back(plan)
        self.patient.journal.abandon(plan.record.repair, self.patient.now(), "given up")

    def _stop(self, plan: RepairPlan) -> Lease:
        """No driver runs and none can start: paused, superseded, gone; in this order."""
        stores, number = self.reach.stores, plan.record.repair
        if stores.control.read().pause is None:
            since = self.patient.now().isoformat(timespec="seconds")
            stores.control.pause(Pause(_by(number), since, "ingest-platform repair apply"))
        lease = stores.lease.take(self.holder, "repair", self.patient.now())
        reason = f"repair {number}"
        left = drain(self.reach, by=self.holder, reason=reason, seconds=self.drain_within)
        if isinstance(left, StillThere):
            stop(self.reach)
            self._refuse_if_alive()
        self._done(plan, Step.STOPPED)
        return lease

    def _refuse_if_alive(self) -> None:
        status = self.reach.stores.status.read(self.reach.name)
        if status and self.reach.launcher.alive(status.runs_at):
            raise RetryableFault(
                f"the driver, process {status.runs_at.pid} on {status.runs_at.host}, does not end",
                where=f"stream {self.reach.name}",
                remedy="end it there, then go on: ingest-platform repair apply",
            )

    def _settle(self, plan: RepairPlan) -> RepairPlan:
        """Make the plan once more, now that nothing moves; it must be what was agreed to."""
        journal, number = self.patient.journal, plan.record.repair
        if not journal.has(number, Step.SETTLED):
            later = make_plan(self.patient, plan.wishes, number)
            changed = plan.differs(later) if later else "nothing is wrong any more"
            if changed or later is None:
                self._give_back(plan)
                journal.abandon(number, self.patient.now(), changed or "")
                raise DataProblem(
                    f"things have changed since the plan was made: {changed}",
                    where=f"stream {self.reach.name}, repair {number}",
                    remedy="nothing was done; plan again: ingest-platform repair plan "
                    f"{self.reach.name}",
                )
            journal.settle(later)
        settled = journal.plan(number) or plan
        self._told(Step.SETTLED)
        return settled

    def _take_out(self, plan: RepairPlan, lease: Lease) -> None:
        """The Spark job; afterwards the table's log says where the next session starts."""
        if self._over(plan, Step.RETIRED):
            return  # a new session may have written since
        if not self._over(plan, Step.TABLE):
            self._done(plan, Step.REMOVING)
            self.reach.say("Taking out what lies beyond the cut (a Spark job).")
            self.remove(lease.generation)
        if not self._marked(plan):
            raise DataProblem(
                f"repair {plan.record.repair} is not the newest word in the table's log",
                where=self.patient.spec.table.path,
                remedy="someone writes this table beside the platform: find out who, and stop it",
            )
        self._told(Step.TABLE)

    def _marked(self, plan: RepairPlan) -> bool:
        log = TableLog(self.patient.spec.table.path, self.patient.storage)
        account = newest_account(log, self.patient.spec.name)
        return isinstance(account, RepairRecord) and account.repair == plan.record.repair

    def _retire(self, plan: RepairPlan) -> None:
        if self._over(plan, Step.RETIRED):
            return
        journal, key = self.patient.journal, self.patient.checkpoint_key
        backup = journal.backup(plan.record.repair)
        files = retire(self.patient.objects, key, backup)
        self.reach.say(f"Moved the checkpoint ({files} files) to {backup}.")
        self._done(plan, Step.RETIRED, files=files, backup=backup)

    def _release(self, plan: RepairPlan) -> None:
        self._give_back(plan)
        self._done(plan, Step.RELEASED)

    def _give_back(self, plan: RepairPlan) -> None:
        """Let drivers start again, unless a person had paused the stream before."""
        stores = self.reach.stores
        stores.lease.hand_back(self.holder, self.patient.now())
        pause = stores.control.read().pause
        if pause and pause.by == _by(plan.record.repair):
            stores.control.resume()

    def _verify(self, plan: RepairPlan) -> Outcome:
        """Start the new session, and audit log, data and topic."""
        paused = self.reach.stores.control.read().pause
        begun = None
        if self.start_within is not None and paused is None:
            begun = start(self.reach, self.start_within)
        self.reach.say("Auditing log, data and topic.")
        report = self.patient.examine(data=self.patient.spec.table.coordinates, topic=True).report
        outcome = Outcome(plan, report)
        if isinstance(begun, NotStarted):
            return replace(outcome, not_started=begun)  # open still: the next call starts again
        errors = [finding.what for finding in report.errors]
        self._done(plan, Step.VERIFIED, clean=report.clean, errors=errors)
        return replace(outcome, started=begun is not None)

    def _over(self, plan: RepairPlan, step: Step) -> bool:
        return self.patient.journal.has(plan.record.repair, step)

    def _done(self, plan: RepairPlan, step: Step, **details: object) -> None:
        self.patient.journal.done(plan.record.repair, step, self.patient.now(), **details)
        self._told(step)

    def _told(self, step: Step) -> None:
        self.reach.say(f"Step {step} is over.")
        self.reached(step)


def blocked(plan: RepairPlan) -> DataProblem:
    """Why a plan cannot be applied."""
    return DataProblem(
        f"the repair needs a decision: {'; '.join(plan.blocked)}",
        where=f"stream {plan.record.stream}",
        remedy="see `ingest-platform repair plan --help` for what each option means",
    )


def _by(number: int) -> str:
    return f"repair {number}"
