"""A table's asset checks: reported by the supervisor, and to be run by a person at any time."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from ingest_platform.adapters.stores import Stores
from ingest_platform.adapters.table_log import TableLog, table_log
from ingest_platform.components.assets import table_key
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.model.times import parse_time
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.balance import ledger_balance
from ingest_platform.supervise.checks import (
    DESCRIPTIONS,
    CheckResult,
    Level,
    Observed,
    driver_checks,
    small_files,
)
from ingest_platform.supervise.seen import Seen
from ingest_platform.supervise.shown import shown
from ingest_platform.supervise.telling import Checked

_UNKNOWN = "nothing is known yet: no driver has reported, or one is just starting"
_COMMITS = 1000  # looked at, at most
_OVERLAP = 20  # commits that two looks share, so that the seam between them is checked too


def check_specs(spec: StreamSpec) -> list[dg.AssetCheckSpec]:
    """What Dagster knows of the checks before the first verdict."""
    return [
        dg.AssetCheckSpec(name, asset=table_key(spec), description=text)
        for name, text in DESCRIPTIONS.items()
    ]


def table_checks(spec: StreamSpec) -> dg.AssetChecksDefinition:
    """The checks as one op, of which any may be chosen; it reads, and changes nothing."""

    @dg.multi_asset_check(name=f"{spec.name}_checks", specs=check_specs(spec), can_subset=True)
    def evaluate(
        context: dg.AssetCheckExecutionContext, s3: S3Resource, launcher: LauncherResource
    ) -> Iterator[dg.AssetCheckResult]:
        storage = s3.storage()
        stores, log = Stores.of(spec, storage), table_log(spec.table.path, storage)
        seen = _seen(spec, stores, launcher, datetime.now(UTC))
        table = of_table(spec, log, Checked(), seen.now)[0]
        results = {r.name: r for r in (*of_driver(spec, seen), *table)}
        for key in context.selected_asset_check_keys:
            # A person asked, and gets an answer.
            result = results.get(key.name) or CheckResult(key.name, Level.WARN, _UNKNOWN)
            yield dg.AssetCheckResult(
                asset_key=key.asset_key, check_name=key.name, **_verdict(result)
            )

    return evaluate


def check_job(spec: StreamSpec, checks: dg.AssetChecksDefinition) -> Any:  # Dagster names no type
    """The job `NAME_check`: all of them, now."""
    return dg.define_asset_job(
        f"{spec.name}_check",
        selection=dg.AssetSelection.checks(checks),
        description=f"Check {spec.name} now: lag, quarantine, ledgers, driver, small files.",
        executor_def=dg.in_process_executor,
    )


def of_driver(spec: StreamSpec, seen: Seen) -> list[CheckResult]:
    """Verdicts from the status document alone."""
    return driver_checks(spec, Observed(seen.status, seen.quiet, shown(spec, seen)))


def of_table(
    spec: StreamSpec, log: TableLog, checked: Checked, now: datetime, *, fresh: bool = True
) -> tuple[list[CheckResult], Checked]:
    """Verdicts from the table's log, and what to remember; no verdict without a table.

    Args:
        spec: The stream.
        log: Of its table.
        checked: What is remembered of the last look.
        now: The time of this one.
        fresh: False if the log was looked at just now.
    """
    size = log.size(fresh=fresh)
    if size is None:
        return [], checked.looked(now, -1, checked.flaw)
    since = min(checked.version, size.version)
    commits = log.commits(max(-1, since - _OVERLAP), _COMMITS, fresh=False)
    balance, flaw = ledger_balance(spec.name, commits, checked.flaw)
    found = [small_files(spec, size.files, size.small, size.bytes)]
    return [*found, *([balance] if balance else [])], checked.looked(now, size.version, flaw)


def evaluations(spec: StreamSpec, results: Iterable[CheckResult]) -> list[dg.AssetCheckEvaluation]:
    """Verdicts as the events that a sensor reports."""
    return [
        dg.AssetCheckEvaluation(
            asset_key=table_key(spec), check_name=result.name, **_verdict(result)
        )
        for result in results
    ]


def _verdict(result: CheckResult) -> dict[str, Any]:
    error = result.level is Level.ERROR
    return {
        "passed": result.level is Level.PASSED,
        "severity": dg.AssetCheckSeverity.ERROR if error else dg.AssetCheckSeverity.WARN,
        "description": result.reason,
        "metadata": dict(result.figures),
    }


def _seen(spec: StreamSpec, stores: Stores, launcher: LauncherResource, now: datetime) -> Seen:
    """One look without a memory: the heartbeat's age is by the clock of whoever looks."""
    status = stores.status.read(spec.name)
    updated = parse_time(status.updated_at) if status else None
    return Seen(
        now=now,
        status=status,
        alive=launcher.launcher(spec).alive(status.runs_at) if status else None,
        lease=stores.lease.current(),
        control=stores.control.read(),
        quiet=max(timedelta(0), now - updated) if updated else timedelta(0),
    )
