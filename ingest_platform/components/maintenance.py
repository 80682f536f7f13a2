"""Compaction and vacuum as assets downstream of the tables, run by schedules, many in one run.

Tables of one lane and one interval share a run, and so a driver and its JVM. The schedules' runs of
a lane never overlap: `dagster.yaml` admits one run for each value of the tag. A run that a person
starts from the graph has no tag; a table has one run at a time all the same, since the driver takes
its turn at each table (`maintain/turn.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import dagster as dg

from ingest_platform.components import tags
from ingest_platform.components.assets import table_key
from ingest_platform.components.launch_history import launches, mark_worker
from ingest_platform.components.maintenance_driver import MaintenanceDriver
from ingest_platform.components.maintenance_run import Table
from ingest_platform.components.resources import LauncherResource
from ingest_platform.model.launches import LaunchOutcome
from ingest_platform.spec import CompactionSpec, StreamSpec, VacuumSpec

Kind = Literal["compaction", "vacuum"]

_OVERTIME = timedelta(minutes=2)

_ABOUT: Mapping[Kind, str] = {
    "compaction": "Small files of {name} put together; rows, ledger and readers are not affected.",
    "vacuum": "Files of {name} deleted that no version within the table's retention needs.",
}


@dataclass(frozen=True)
class Round:
    """What one run does: one kind of maintenance for tables of one lane and interval."""

    kind: Kind
    lane: str
    tables: tuple[Table, ...]

    @property
    def name(self) -> str:
        """Of job, asset op and logs: `shared_compaction_15m`."""
        return f"{self.lane}_{self.kind}_{rules(self.tables[0].spec, self.kind).interval_name}"

    @property
    def timeout(self) -> timedelta:
        """After which a run is ended: that of the most patient table."""
        return max(table.spec.maintenance.timeout for table in self.tables)


def rules(spec: StreamSpec, kind: Kind) -> CompactionSpec | VacuumSpec:
    """The section of the spec that says how often."""
    found = spec.maintenance
    return found.compaction if kind == "compaction" else found.vacuum


def maintenance_key(spec: StreamSpec, kind: Kind) -> dg.AssetKey:
    """The asset of a table's compaction or vacuum."""
    return dg.AssetKey([f"{spec.name}_{kind}"])


def rounds(tables: Iterable[Table]) -> list[Round]:
    """Group tables into runs, in the order of their names."""
    ordered = sorted(tables, key=lambda table: table.spec.name)
    found: dict[tuple[Kind, str, timedelta], list[Table]] = {}
    kinds: tuple[Kind, ...] = ("compaction", "vacuum")
    for kind in kinds:
        for table in ordered:
            key = (kind, table.spec.maintenance.lane, rules(table.spec, kind).every)
            found.setdefault(key, []).append(table)
    return [Round(kind, lane, tuple(some)) for (kind, lane, _), some in found.items()]


def maintenance_definitions(tables: Sequence[Table], *, of: str | None = None) -> dg.Definitions:
    """Assets, jobs and schedules of all rounds of a deployment.

    Args:
        tables: All tables of the deployment.
        of: Only the rounds that this stream is the first of, so that each is defined once though
            every component is asked for its own definitions.
    """
    mine = [r for r in rounds(tables) if of is None or r.tables[0].spec.name == of]
    assets, jobs, schedules = [], [], []
    for each in mine:
        asset = _assets(each)
        job = _job(each, asset)
        assets.append(asset)
        jobs.append(job)
        scheduled = [t for t in each.tables if rules(t.spec, each.kind).enabled]
        if scheduled:
            schedules.append(_schedule(each, scheduled, job))
    return dg.Definitions(assets=assets, jobs=jobs, schedules=schedules)


def _assets(each: Round) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=f"{each.name}_driver",  # an op must not share the job's name
        specs=[_asset(table.spec, each.kind) for table in each.tables],
        can_subset=True,
        op_tags={"kind": "spark"},
    )
    def maintain(
        context: dg.AssetExecutionContext,
        launcher: LauncherResource,
        maintenance: MaintenanceDriver,
    ) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        mark_worker(context.instance, context.run.run_id)
        wanted = [
            table
            for table in each.tables
            if maintenance_key(table.spec, each.kind) in context.selected_asset_keys
        ]
        action = "compact" if each.kind == "compaction" else "vacuum"
        logs = launcher.logs_of(each.name)
        yield from maintenance.maintain(context, action, wanted, logs, each.timeout)

    return maintain


def _asset(spec: StreamSpec, kind: Kind) -> dg.AssetSpec:
    upstream = table_key(spec) if kind == "compaction" else maintenance_key(spec, "compaction")
    return dg.AssetSpec(
        maintenance_key(spec, kind),
        deps=[upstream],
        description=_ABOUT[kind].format(name=spec.name),
        metadata={"path": spec.table.path, "every": str(rules(spec, kind).every)},
        group_name=spec.group,
        owners=list(spec.owners),
        kinds={"delta", "spark"},
    )


def _job(each: Round, assets: dg.AssetsDefinition):  # noqa: ANN202  (Dagster does not export it)
    return dg.define_asset_job(
        each.name,
        selection=dg.AssetSelection.assets(assets),
        description=f"The {each.kind} of {', '.join(t.spec.name for t in each.tables)}.",
        tags={
            tags.MAINTENANCE: each.lane,
            # For a run whose own process hangs; the driver's time is up before that.
            "dagster/max_runtime": str(round((each.timeout + _OVERTIME).total_seconds())),
            "dagster/max_retries": "0",  # the next run of the schedule finds what is left
        },
        executor_def=dg.in_process_executor,
    )


def _schedule(each: Round, scheduled: Sequence[Table], job: Any) -> dg.ScheduleDefinition:
    every = rules(scheduled[0].spec, each.kind)
    selection = [maintenance_key(table.spec, each.kind) for table in scheduled]

    @dg.schedule(
        name=f"{each.name}_schedule",
        job=job,
        cron_schedule=every.cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"The {each.kind} of {len(scheduled)} tables, by the clock.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        # After downtime Dagster asks for the ticks that were missed; one run does for all of them.
        late = datetime.now(UTC) - context.scheduled_execution_time
        if late >= every.every:
            return dg.SkipReason(f"missed {late.total_seconds() / 60:.0f} minutes ago")
        open_runs = [
            record
            for record in launches(context.instance, each.name)
            if record.outcome is LaunchOutcome.PENDING
        ]
        if open_runs:
            since = open_runs[0].requested_at.isoformat(timespec="seconds")
            return dg.SkipReason(f"run {open_runs[0].id} of {since} is not done yet")
        return dg.RunRequest(asset_selection=selection)

    return schedule
