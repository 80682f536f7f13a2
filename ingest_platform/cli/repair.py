"""`ingest-platform repair`: plan, apply or abandon the repair of a stream."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from ingest_platform.adapters.processes import this_holder
from ingest_platform.cli.audit_view import show_report
from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.repair_view import show_plan, show_steps
from ingest_platform.cli.steering import Steering, driver_error
from ingest_platform.errors import DataProblem, UserError
from ingest_platform.model.repair import RepairPlan, Step, Wishes
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StorageEnvironment
from ingest_platform.steer.repair_planning import Patient, make_plan
from ingest_platform.steer.repair_process import removal_process
from ingest_platform.steer.repairing import Outcome, Repairing, blocked

_OPTIONS = (
    click.argument("name"),
    click.option(
        "--since",
        metavar="TIME",
        help="Read again what was committed at this time or later: a wrong decode was deployed "
        "then. ISO 8601 with zone, 2026-01-31T18:00:00Z.",
    ),
    click.option("--to-version", type=int, help="The same, by the last good version of the table."),
    click.option(
        "--accept-gap",
        is_flag=True,
        help="Give up offsets that the topic no longer holds. The table's log records which.",
    ),
    click.option(
        "--topic-recreated",
        is_flag=True,
        help="The topic was deleted and made anew: read it from its beginning; the old rows stay.",
    ),
    click.option("--data", is_flag=True, help="Look for missing and doubled rows, too: a scan."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
)


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group()
def repair() -> None:
    """Mend a stream whose checkpoint, table or topic no longer fit each other.

    \b
    Symptom                                        Options
      checkpoint lost, torn or rolled back         none
      table restored to an old version             none
      duplicated range, gap (audit finds it)       none; --data without ledgers
      wrong decode deployed at a time              --since TIME, or --to-version N
      retention passed the checkpoint              --accept-gap
      topic deleted and made anew                  --topic-recreated

    \b
    Examples:
      ingest-platform repair plan clicks                       # changes nothing
      ingest-platform repair apply clicks --yes
      ingest-platform repair apply clicks --since 2026-01-31T18:00:00Z
      ingest-platform repair apply clicks --accept-gap
    """  # noqa: D301 - click's mark for a block to keep


@repair.command()
@_with_options
def plan(name: str, as_json: bool, **wishes: Any) -> None:
    """Show what a repair would do; nothing is changed.

    Looks at checkpoint, table and topic. An open repair is shown with the steps that are over.

    \b
    Examples:
      ingest-platform repair plan clicks
      ingest-platform repair plan clicks --data --json | jq .plan.findings

    Exit code 0 if nothing is wrong or the plan can be applied, 4 if a decision is missing.
    """  # noqa: D301 - click's mark for a block to keep
    steering = Steering(name, quiet=as_json)
    patient = _patient(steering)
    current = patient.journal.open_repair()
    found = current or make_plan(patient, _wishes(wishes))
    over = [s for s in Step if current and patient.journal.has(current.record.repair, s)]
    if as_json:
        shown = found.to_dict() if found else None
        document = {"name": patient.spec.name, "open": bool(current), "done": over, "plan": shown}
        click.echo(json.dumps(document))
    elif found is None:
        click.echo(f"{patient.spec.name}: nothing to repair")
    else:
        show_plan(found, stdout_console())
        if current:
            show_steps(current, over, stdout_console())
    if found and found.blocked:
        click.get_current_context().exit(DataProblem.exit_code)


@repair.command()
@_with_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--no-start", is_flag=True, help="Leave the start of the new session to others.")
@click.option(
    "--within", default=180.0, show_default=True, help="Seconds that the new session has to start."
)
def apply(
    name: str, as_json: bool, yes: bool, no_start: bool, within: float, **wishes: Any
) -> None:
    """Carry out a repair, after showing its plan; go on with one that was cut off.

    Stops the driver, takes out what lies beyond the cut (a Spark job), retires the checkpoint (its
    backup stays in the journal), starts a new session and audits log, data and topic. Safe to be
    killed and called again at any time.

    \b
    Examples:
      ingest-platform repair apply clicks
      ingest-platform repair apply clicks --to-version 1207 --yes --json

    Exit code 0 if the audit afterwards is clean; 2 not confirmed, or a repair is under way
    elsewhere; 3 the environment failed: call it again; 4 a decision is missing, or the audit found
    errors.
    """  # noqa: D301 - click's mark for a block to keep
    steering = Steering(name, quiet=as_json)
    patient = _patient(steering)
    current = patient.journal.open_repair()
    found = current or make_plan(patient, _wishes(wishes))
    if current and _wishes(wishes) not in {Wishes(), current.wishes}:
        raise UserError(
            f"repair {current.record.repair} is open, and was begun with other options",
            where=patient.journal.path,
            remedy=f"finish it: ingest-platform repair apply {patient.spec.name}; or give it up: "
            f"ingest-platform repair abandon {patient.spec.name}",
        )
    if found is None:
        _show_nothing(patient, as_json=as_json)
        return
    if not as_json:
        show_plan(found, stdout_console())
    if found.blocked and not current:
        raise blocked(found)
    _confirm(found, yes=yes)
    repairing = _repairing(steering, patient, None if no_start else within)
    outcome = repairing.go_on(found) if current else repairing.begin(found)
    _show_outcome(outcome, as_json=as_json)
    if outcome.not_started:
        raise driver_error(outcome.not_started)
    if not outcome.report.clean:
        click.get_current_context().exit(DataProblem.exit_code)


@repair.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def abandon(name: str, as_json: bool) -> None:
    """Give up an open repair that has changed nothing in the table yet.

    \b
    Example:
      ingest-platform repair abandon clicks

    Exit code 0 if none is open any more; 4 if rows are out already: then it can only be finished,
    with `repair apply`.
    """  # noqa: D301 - click's mark for a block to keep
    steering = Steering(name, quiet=as_json)
    patient = _patient(steering)
    current = patient.journal.open_repair()
    if current is not None:
        _repairing(steering, patient, None).abandon(current)
    number = current.record.repair if current else None
    if as_json:
        click.echo(json.dumps({"name": patient.spec.name, "abandoned": number}))
    else:
        done = f"repair {number} is given up" if number else "no repair is open"
        click.echo(f"{patient.spec.name}: {done}")


def _patient(steering: Steering) -> Patient:
    storage = StorageEnvironment.from_env(os.environ)
    return Patient(steering.spec, storage, os.environ, utc_now)


def _repairing(steering: Steering, patient: Patient, start_within: float | None) -> Repairing:
    return Repairing(
        patient,
        steering.reach,
        removal_process(steering.reach.launch),
        this_holder(),
        steering.spec.supervision.drain_within.total_seconds(),
        start_within,
    )


def _wishes(wishes: dict[str, Any]) -> Wishes:
    since = wishes["since"]
    if since is not None and _without_zone(since):
        raise UserError(
            f"{since!r} is not a time with zone",
            where="--since",
            remedy="write it as 2026-01-31T18:00:00Z, or with an offset: +01:00",
        )
    if since is not None and wishes["to_version"] is not None:
        raise UserError(
            "both a time and a version say where the good state ends",
            where="--since, --to-version",
            remedy="give one of them",
        )
    return Wishes(**wishes)


def _without_zone(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return True


def _confirm(found: RepairPlan, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(
            "nobody can be asked here",
            where=f"repair of {found.record.stream}",
            remedy="look at `ingest-platform repair plan`, then give --yes",
        )
    if not click.confirm("Apply this repair?"):
        raise UserError("not confirmed; nothing was changed", remedy="call it again with --yes")


def _show_nothing(patient: Patient, *, as_json: bool) -> None:
    name = patient.spec.name
    document = {"name": name, "plan": None, "audit": None, "started": False}
    click.echo(json.dumps(document) if as_json else f"{name}: nothing to repair")


def _show_outcome(outcome: Outcome, *, as_json: bool) -> None:
    found = outcome.plan.record
    if as_json:
        document = {
            "name": found.stream,
            "plan": outcome.plan.to_dict(),
            "audit": outcome.report.to_dict(),
            "started": outcome.started,
        }
        click.echo(json.dumps(document))
        return
    show_report(outcome.report, found.stream, "the repaired table", stdout_console())
    runs = (
        "its new session runs"
        if outcome.started
        else f"no driver was started; to do so: ingest-platform stream start {found.stream}"
    )
    click.echo(f"{found.stream}: repair {found.repair} is done; {runs}")
