"""The job `<name>_repair`: its run shows the plan as metadata, and applies it if told to."""

import os
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from ingest_platform.adapters.processes import this_holder
from ingest_platform.components import actions, tags
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.errors import IngestError
from ingest_platform.model.repair import RepairPlan, Wishes
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StreamSpec
from ingest_platform.steer.repair_planning import Patient, make_plan
from ingest_platform.steer.repair_process import removal_process
from ingest_platform.steer.repairing import Outcome, Repairing


class RepairConfig(dg.Config):
    """What the repair is to mend; the defaults only look, and show the plan."""

    apply: bool = Field(default=False, description="Carry the plan out; otherwise only show it.")
    since: str = Field(
        default="",
        description="Read again what was committed at this time or later: 2026-01-31T18:00:00Z.",
    )
    to_version: int = Field(
        default=-1, description="The last good version of the table; -1: find it."
    )
    accept_gap: bool = Field(
        default=False, description="Give up offsets that the topic no longer holds."
    )
    topic_recreated: bool = Field(
        default=False, description="The topic was deleted and made anew; the old rows stay."
    )
    data: bool = Field(default=False, description="Look for missing and doubled rows, too: a scan.")

    def wishes(self) -> Wishes:
        """In the platform's own words."""
        version = self.to_version if self.to_version >= 0 else None
        return Wishes(self.since or None, version, self.accept_gap, self.topic_recreated, self.data)


def repair_job(spec: StreamSpec, path: Path) -> dg.JobDefinition:
    """The job that plans, and applies, a repair of one stream."""
    description = (
        f"Show what a repair of {spec.name} would do, as this run's metadata; with apply: true, "
        "carry it out. Run it again if it was cut off."
    )

    @dg.op(name=f"{spec.name}_repair_stream", description=description, tags={"kind": "spark"})
    def repair(
        context: dg.OpExecutionContext,
        config: RepairConfig,
        s3: S3Resource,
        launcher: LauncherResource,
    ) -> None:
        reach = actions.reach_of(context, spec, path, s3, launcher)
        patient = Patient(spec, s3.storage(), os.environ, utc_now)
        repairing = Repairing(
            patient,
            reach,
            removal_process(reach.launch),
            this_holder(),
            spec.supervision.drain_within.total_seconds(),
            launcher.healthy_within,
        )
        try:
            _repair(context, config, repairing)
        except IngestError as error:
            raise dg.Failure(str(error), allow_retries=False) from None

    @dg.job(
        name=f"{spec.name}_repair",
        description=description,
        tags={tags.STREAM: spec.name, tags.ACTION: "repair", "dagster/max_retries": "0"},
        executor_def=dg.in_process_executor,
    )
    def run() -> None:
        repair()

    return run


def _repair(context: dg.OpExecutionContext, config: RepairConfig, repairing: Repairing) -> None:
    current = repairing.patient.journal.open_repair()
    plan = current or make_plan(repairing.patient, config.wishes())
    if plan is None:
        context.log.info("Nothing to repair.")
        context.add_output_metadata({"needed": False})
        return
    metadata = _metadata(plan)
    if config.apply:
        outcome = repairing.go_on(plan) if current else repairing.begin(plan)
        metadata |= _outcome(outcome)
    context.add_output_metadata(metadata)


def _metadata(plan: RepairPlan) -> dict[str, Any]:
    record = plan.record
    found = "\n".join(f"- {finding.symptom}: {finding.what}" for finding in plan.findings)
    return {
        "needed": True,
        "repair": record.repair,
        "findings": dg.MetadataValue.md(found),
        "blocked": dg.MetadataValue.md("\n".join(f"- {b}" for b in plan.blocked) or "no"),
        "last good version": record.kept_version,
        "read from": dg.MetadataValue.json(record.start.to_dict()),
        "given up": dg.MetadataValue.json(record.accepted.to_ledger()),
        "rows to remove": plan.table.rows,
        "files touched": plan.table.files,
        "rejected records to remove": plan.quarantine.rows,
        "plan": dg.MetadataValue.json(plan.to_dict()),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    """What the audit said.

    Raises:
        dagster.Failure: It found errors, or the new session did not start.
    """
    errors = "\n".join(f"- {finding.what}" for finding in outcome.report.errors)
    if errors:
        raise dg.Failure(f"The audit after the repair found errors:\n{errors}", allow_retries=False)
    if outcome.not_started:
        raise dg.Failure(
            f"Repaired, but the new session did not start: {outcome.not_started.reason}. Run this "
            "job again.",
            allow_retries=False,
        )
    return {"applied": True, "started": outcome.started, "audit": "clean"}
