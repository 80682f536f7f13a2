"""The sensor `<name>_supervisor`: looks at a stream, decides, asks for runs, reports progress."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

import dagster as dg

from ingest_platform.adapters import log_files
from ingest_platform.adapters.launcher import Launcher
from ingest_platform.adapters.stores import Stores
from ingest_platform.adapters.table_log import TableLog, table_log
from ingest_platform.components import checks, tags
from ingest_platform.components.launch_history import launches
from ingest_platform.components.materializations import (
    materialization,
    quarantine_materialization,
)
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.components.stream_jobs import LAUNCHING, ORDERING, job_name
from ingest_platform.errors import RetryableFault
from ingest_platform.model.decisions import Decision, Drain, GiveUp, Start, Stop
from ingest_platform.model.launches import LaunchRecord
from ingest_platform.model.status import Status
from ingest_platform.model.times import parse_time
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.contact import contact_of
from ingest_platform.supervise.decide import decide
from ingest_platform.supervise.materialize import (
    Evidence,
    Reported,
    first_reported,
    not_due,
    nothing_new,
    report,
)
from ingest_platform.supervise.memory import Memory
from ingest_platform.supervise.seen import Seen
from ingest_platform.supervise.shown import shown

INTERVAL_SECONDS = 15


def supervisor_sensor(spec: StreamSpec, jobs: Sequence[dg.JobDefinition]) -> dg.SensorDefinition:
    """Build the sensor: running by default, no JVM, a handful of small reads in each tick."""
    asked = {job_name(spec, action) for action in (*LAUNCHING, *ORDERING)}

    @dg.sensor(
        name=f"{spec.name}_supervisor",
        jobs=[job for job in jobs if job.name in asked],
        description=f"Keeps the driver of {spec.name} running and reports its progress.",
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={tags.STREAM: spec.name},
    )
    def supervise(
        context: dg.SensorEvaluationContext, s3: S3Resource, launcher: LauncherResource
    ) -> dg.SensorResult:
        storage = s3.storage()
        log_files.bound(launcher.logs_of(spec.name))
        tick = Tick(
            spec,
            Stores.of(spec, storage),
            launcher.launcher(spec),
            lambda: table_log(spec.table.path, storage),
            datetime.now(UTC),
        )
        return tick.result(context.instance, context.cursor)

    return supervise


@dataclass(frozen=True)
class Tick:
    """One look at a stream and what follows from it."""

    spec: StreamSpec
    stores: Stores
    launcher: Launcher
    log: Callable[[], TableLog]
    now: datetime

    def result(self, instance: dg.DagsterInstance, cursor: str | None) -> dg.SensorResult:
        """What Dagster is told. The cursor's report advances only together with its events."""
        memory = Memory.from_cursor(cursor)
        try:
            seen, memory = self._look(instance, memory)
            decision = decide(self.spec, seen)
            request = self._request(decision, seen)
            if request:
                self.stores.contact.tell(contact_of(self.spec, seen, decision))
                return dg.SensorResult(run_requests=[request], cursor=memory.to_cursor())
            made, memory = self._report(seen, memory)
            verdicts, memory = self._check(seen, memory, fresh=not made)
            # Last: a tick that fails on the way is silence, which the driver tells a person of.
            self.stores.contact.tell(contact_of(self.spec, seen, decision))
        except RetryableFault as fault:
            memory = replace(memory, heartbeat=memory.heartbeat.excused(self.now))
            # A tick that fails would be shown as the supervisor's error; this one heals.
            return dg.SensorResult(
                skip_reason=f"cannot see the stream: {fault}", cursor=memory.to_cursor()
            )
        return dg.SensorResult(
            asset_events=[*made, *verdicts], skip_reason=_text(decision), cursor=memory.to_cursor()
        )

    def _look(self, instance: dg.DagsterInstance, memory: Memory) -> tuple[Seen, Memory]:
        status, control = self.stores.status.read(self.spec.name), self.stores.control.read()
        memory = replace(
            memory,
            heartbeat=memory.heartbeat.look(status, self.now),
            standing=memory.standing.look(status, control, self.now),
            trend=memory.trend.look(status),
        )
        seen = Seen(
            now=self.now,
            status=status,
            alive=self.launcher.alive(status.runs_at) if status else None,
            lease=self.stores.lease.current(),
            control=control,
            launches=self._runs(instance, LAUNCHING),
            orders=self._runs(instance, ORDERING),
            quiet=memory.heartbeat.quiet(self.now),
            looks=memory.heartbeat.looks,
            standing=memory.standing.span(self.now),
            trend=memory.trend,
        )
        return seen, memory

    def _runs(
        self, instance: dg.DagsterInstance, actions: Sequence[str]
    ) -> tuple[LaunchRecord, ...]:
        return launches(instance, *(job_name(self.spec, action) for action in actions))

    def _request(self, decision: Decision, seen: Seen) -> dg.RunRequest | None:
        """The run that carries out the decision; None for one that needs none."""
        generation = seen.status.generation if seen.status else 0
        match decision:
            case Start():
                more = {tags.ATTEMPT: str(decision.attempt), tags.CAUSE: decision.cause}
                return self._run("start", decision, decision.generation, seen.launches, more)
            case Drain():
                action = "restart" if decision.then_start else "drain"
                more = {} if decision.overlap else {tags.OVERLAP: "no"}
                return self._run(action, decision, generation, seen.orders, more)
            case Stop():
                return self._run("stop", decision, generation, seen.orders)
            case _:
                return None

    def _run(
        self,
        action: str,
        decision: Decision,
        generation: int,
        before: Sequence[LaunchRecord],
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> dg.RunRequest:
        last = before[-1].id if before else "none"
        noted = {tags.REASON: tags.text_tag(decision.reason), tags.GENERATION: str(generation)}
        return dg.RunRequest(
            # Until the run that this asks for is in the history, asking again changes nothing:
            # neither a lost cursor nor a second daemon can launch twice.
            run_key=f"{self.spec.name}-{action}-{generation}-after-{last}",
            job_name=job_name(self.spec, action),
            tags={**noted, **{name: text for name, text in more.items() if text}},
        )

    def _report(self, seen: Seen, memory: Memory) -> tuple[list[dg.AssetMaterialization], Memory]:
        status = seen.status
        found = Evidence(status, seen.quiet, moving=memory.heartbeat.moving, now=self.now)
        if status is None or not_due(self.spec, memory.reported, found):
            return [], memory
        log = self.log()
        version = log.version()
        reported = _for_table(memory.reported, version, log, status)
        if nothing_new(reported, found, version):
            return [], memory
        made = report(reported, found, log.commits(reported.version, fresh=False), status)
        events = [materialization(self.spec, made, status, shown(self.spec, seen))]
        rejects = memory.rejects.more(made.quarantined, made.records)
        if rejects.due(self.now):
            events.append(quarantine_materialization(self.spec, rejects))
            rejects = rejects.reported(self.now)
        reported = Reported(self.now.isoformat(), made.table_version)
        return events, replace(memory, reported=reported, rejects=rejects)

    def _check(
        self, seen: Seen, memory: Memory, *, fresh: bool
    ) -> tuple[list[dg.AssetCheckEvaluation], Memory]:
        """Verdicts to tell. The table itself is looked at as rarely as it is reported."""
        found, checked = checks.of_driver(self.spec, seen), memory.checked
        if checked.look_due(self.spec.report_every, self.now):
            of_table, checked = checks.of_table(
                self.spec, self.log(), checked, self.now, fresh=fresh
            )
            found = [*found, *of_table]
        told, checked = checked.tell(found, self.now)
        return checks.evaluations(self.spec, told), replace(memory, checked=checked)


def _for_table(reported: Reported, version: int | None, log: TableLog, status: Status) -> Reported:
    """Where to go on: from the last report, unless there is none or the table was made anew."""
    if version is not None and version < reported.version:
        log.forget()
        return Reported(at=reported.at)
    started = parse_time(status.started_at)
    if reported.at or started is None:
        return reported
    started_ms = int(started.timestamp() * 1000)
    return first_reported(log.commits_around(started_ms), started_ms)


def _text(decision: Decision) -> str:
    if isinstance(decision, GiveUp):
        return f"needs a person: {decision.reason}; {decision.remedy}"
    return decision.reason
