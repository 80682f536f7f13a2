"""A simulated world for the supervisor: drivers that die, hang and stall, and runs that take time.

It models what the decision cannot choose: a driver takes the lease when it starts, and ends when a
higher generation exists; a run is seen as pending before its outcome is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ingest_platform.model.control import Control, Pause
from ingest_platform.model.decisions import Decision, Drain, Start, Stop
from ingest_platform.model.launches import LaunchOutcome, LaunchRecord
from ingest_platform.model.lease import Lease
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport, ErrorReport, Status
from ingest_platform.supervise.decide import decide
from ingest_platform.supervise.memory import Memory
from ingest_platform.supervise.seen import Seen
from ingest_platform.supervise.shown import shown
from ingest_platform_tests.factories import NOW, make_spec, make_status

TICK = timedelta(seconds=15)
NO_BROKER = ErrorReport("KafkaUnreachableError", "no broker", "wait", retryable=True)


@dataclass
class World:
    """One stream, its driver, and the supervisor that watches it."""

    now: datetime = NOW
    memory: Memory = field(default_factory=Memory)
    control: Control = field(default_factory=Control)
    status: Status | None = None
    alive: bool = False
    hung: bool = False
    stalled: bool = False
    broker: bool = True
    generation: int = 0
    standby: str = ""  # a successor in standby: `ready`, `refused` or `killed`
    refuses: bool = False
    launched: list[datetime] = field(default_factory=list)
    runs: list[LaunchRecord] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    spec: object = field(default_factory=make_spec)

    # --- what happens to it ---

    def kill(self) -> None:
        self.alive = False

    def hang(self) -> None:
        self.hung = self.alive

    def stall(self) -> None:
        self.stalled = self.alive

    def lose_broker(self) -> None:
        self.broker = False
        if self.alive and self.status:
            self.alive = False
            self.status = replace(self.status, state=StreamState.BACKOFF, error=NO_BROKER)

    def find_broker(self) -> None:
        self.broker = True

    def kill_standby(self) -> None:
        """While it waits, or when its turn has come; or the kernel has no memory for two."""
        self.standby = "killed" if self.standby else ""

    def refuse_successors(self) -> None:
        """Someone saves a spec with a mistake."""
        self.refuses = True

    def mend_spec(self) -> None:
        self.refuses = False

    def age(self) -> None:
        """The driver gets as old as a turnover needs."""
        if self.alive and self.status:
            old = (self.now - timedelta(days=2)).isoformat()
            self.status = replace(self.status, started_at=old)

    def pause(self) -> None:
        self.control = Control(Pause("ada", "now"))

    def resume(self) -> None:
        self.control = Control()

    def forget(self) -> None:
        """The daemon lost its cursor."""
        self.memory = Memory()

    # --- time ---

    def tick(self) -> Decision:
        """A quarter of a minute: runs end, the driver beats, the supervisor looks and decides."""
        self.now += TICK
        self._finish_runs()
        self._beat()
        self.memory = Memory.from_cursor(
            Memory(
                self.memory.heartbeat.look(self.status, self.now),
                self.memory.reported,
                self.memory.standing.look(self.status, self.control, self.now),
                self.memory.trend.look(self.status),
            ).to_cursor()
        )
        seen = self.seen()
        decision = decide(self.spec, seen)
        assert shown(self.spec, seen).reason == decision.reason
        self.decisions.append(decision)
        action = {Start: "start", Drain: "restart", Stop: "stop"}.get(type(decision))
        if action:
            attempt = decision.attempt if isinstance(decision, Start) else 1
            cause = decision.cause if isinstance(decision, Start) else ""
            self.runs.append(
                LaunchRecord(
                    f"run-{len(self.runs)}", self.now, LaunchOutcome.PENDING,
                    attempt=attempt, cause=cause, action=action,
                )
            )  # fmt: skip
            overlap = isinstance(decision, Drain) and decision.overlap
            if overlap and self.alive and not self.control.pause:
                self.standby = "refused" if self.refuses else "ready"
                self.launched.append(self.now)
        return decision

    def seen(self) -> Seen:
        """What the supervisor sees now."""
        heartbeat = self.memory.heartbeat
        return Seen(
            now=self.now,
            status=self.status,
            alive=self.alive if self.status else None,
            lease=Lease(self.generation, "h:1", "") if self.generation else None,
            control=self.control,
            launches=tuple(r for r in self.runs if r.action in {"start", "restart"})[-10:],
            orders=tuple(r for r in self.runs if r.action in {"restart", "stop"})[-10:],
            quiet=heartbeat.quiet(self.now),
            looks=heartbeat.looks,
            standing=self.memory.standing.span(self.now),
            trend=self.memory.trend,
        )

    def _beat(self) -> None:
        if self.alive and self.control.pause and not self.hung:
            self.alive = False
            assert self.status
            self.status = replace(self.status, state=StreamState.STOPPED, reason="paused")
        if self.alive and not self.hung and self.status:
            batch = self.status.last_batch
            if not self.stalled:
                at = self.now.isoformat()
                batch = BatchReport(id=1, finished_at=at, rows=10, seconds=1)
            self.status = replace(
                self.status, updated_at=self.now.isoformat(), last_batch=batch, behind={"t-0": 5}
            )

    def _finish_runs(self) -> None:
        for i, run in enumerate(self.runs):
            if run.outcome is LaunchOutcome.PENDING:
                outcome = self._act(run)
                self.runs[i] = replace(run, outcome=outcome, ended_at=self.now)

    def _act(self, run: LaunchRecord) -> LaunchOutcome:
        standby, self.standby = self.standby, ""
        if run.action == "restart" and standby in {"refused", "killed"} and self.alive:
            return LaunchOutcome.FAILED  # the driver was asked nothing, and goes on
        if run.action in {"stop", "restart"}:
            self.alive = self.hung = self.stalled = False
        if run.action == "stop":
            return LaunchOutcome.HEALTHY
        if self.control.pause:
            return LaunchOutcome.FAILED
        assert not self.alive or run.action == "start", "two drivers"
        if self.alive:
            return LaunchOutcome.HEALTHY  # the start job finds it running
        self.generation += 1
        if standby != "ready":
            self.launched.append(self.now)
        self.hung = self.stalled = False
        at = self.now.isoformat()
        self.status = make_status(generation=self.generation, started_at=at, updated_at=at)
        self.alive = self.broker
        if not self.broker:
            self.status = replace(self.status, state=StreamState.BACKOFF, error=NO_BROKER)
        return LaunchOutcome.HEALTHY if self.broker else LaunchOutcome.FAILED
