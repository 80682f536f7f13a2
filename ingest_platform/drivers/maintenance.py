"""The maintenance driver: compaction or vacuum of one or many tables, in one process.

    python -m ingest_platform.drivers.maintenance compact|vacuum NAME=PATH/defs.yaml ...

Tables are served one after the other; one that fails does not keep the others from their turn.
Spark is started when the first table needs it, and not at all if none does. Ending the process at
any time is safe: what was committed stays, and the rest is found again by the next run.

Exit codes: 0, or that of the first table's error by the error tree.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import click
from dagster_pipes import PipesContext, PipesEnvVarParamsLoader, open_dagster_pipes

from ingest_platform.adapters.housekeeping_store import HousekeepingStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.drivers.compact_table import compact_table
from ingest_platform.drivers.diagnostics import set_up_logging
from ingest_platform.drivers.failures import classify
from ingest_platform.drivers.sessions import SessionOnDemand
from ingest_platform.drivers.vacuum_table import JVM_OPTIONS as VACUUM_JVM
from ingest_platform.drivers.vacuum_table import VacuumOptions, vacuum_table
from ingest_platform.errors import IngestError
from ingest_platform.maintain.table_report import TableReport
from ingest_platform.spec import StorageEnvironment, StreamSpec, load_spec
from ingest_platform.spec.environment import log_root

log = logging.getLogger(__name__)

Action = Literal["compact", "vacuum"]
Told = Callable[[TableReport], None]

_AUTOGROUP: Final = Path("/proc/self/autogroup")


@dataclass(frozen=True)
class Run:
    """What one run is to do.

    Attributes:
        action: Compaction or vacuum.
        specs: The tables, in the order of their turn.
        dry_run: Plan only.
        vacuum: What a person wants of a vacuum beside the spec.
    """

    action: Action
    specs: Sequence[StreamSpec]
    dry_run: bool = False
    vacuum: VacuumOptions = field(default_factory=VacuumOptions)


def give_way(specs: Sequence[StreamSpec]) -> None:
    """Lower this process's priority for good, as far as all of the tables allow.

    Before the JVM starts, which inherits it: on a host that they share, compaction would otherwise
    take turns with the stream's batches as an equal. Where Linux divides the cores among sessions
    first (sched(7), autogroup), niceness counts within a session only; then the session, which as
    a run's driver is this process's own, has to give way as well.
    """
    nice = min(spec.maintenance.nice for spec in specs)
    os.nice(nice)
    if nice and os.getsid(0) == os.getpid():
        with suppress(OSError):  # no such kernel: then there is nothing to be done
            _AUTOGROUP.write_text(str(nice))


def maintain(
    run: Run, environ: Mapping[str, str], log_dir: Path, told: Told = lambda _: None
) -> list[TableReport]:
    """Serve the tables; `told` hears of each as it is done.

    Errors are in the reports. Only what no table is to blame for is raised, such as an interrupt.
    """
    storage = StorageEnvironment.from_env(environ)
    reports = []
    options = VACUUM_JVM if run.action == "vacuum" else ()
    with SessionOnDemand(
        run.specs, environ, log_dir, f"ingest-{run.action}", jvm_options=options
    ) as session:
        for spec in run.specs:
            report = _serve(run, spec, storage, session)
            _remember(run, spec, storage, report)
            told(report)
            reports.append(report)
    return reports


def _serve(
    run: Run, spec: StreamSpec, storage: StorageEnvironment, session: SessionOnDemand
) -> TableReport:
    """Maintain a stream's table and its quarantine table."""
    report = _serve_one(run, spec, storage, session)
    beside = _serve_one(run, _quarantine_of(spec), storage, session)
    return report.with_quarantine(beside)


def _serve_one(
    run: Run, spec: StreamSpec, storage: StorageEnvironment, session: SessionOnDemand
) -> TableReport:
    now = datetime.now(UTC)
    try:
        if run.action == "compact":
            return compact_table(spec, storage, session.get, now, dry_run=run.dry_run)
        return vacuum_table(spec, storage, session.get, now, run.vacuum)
    except Exception as error:
        failure = classify(error, where=f"{run.action} of {spec.name}")
        log.error("%s", failure, exc_info=error if failure is not error else None)
        return TableReport(spec.name, f"failed: {failure.what}", error=failure)


def _remember(run: Run, spec: StreamSpec, storage: StorageEnvironment, report: TableReport) -> None:
    """Leave the time for `ingest-platform status`."""
    if run.dry_run or report.error:
        return
    try:
        housekeeping = HousekeepingStore(object_store(spec.root, storage), spec.name)
        housekeeping.ran(run.action, datetime.now(UTC))
    except IngestError as error:
        log.warning("the run could not be noted: %s", error)  # the table is maintained all the same


def _quarantine_of(spec: StreamSpec) -> StreamSpec:
    """The quarantine table as if it were a stream's own: by the same rules, but never clustered."""
    rules = spec.maintenance.compaction.model_copy(update={"z_order": ()})
    return spec.model_copy(
        update={
            "name": f"{spec.name}_quarantine",
            "table": spec.table.model_copy(update={"path": spec.table.quarantine}),
            "state_path": spec.root,
            "maintenance": spec.maintenance.model_copy(update={"compaction": rules}),
        }
    )


@contextmanager
def reporting(action: Action) -> Iterator[Told]:
    """Where reports go: to the Dagster run that started this process, if one did, and the log."""
    if not PipesEnvVarParamsLoader().is_dagster_pipes_process():
        yield lambda report: log.info("%s: %s", report.name, report.done)
        return
    with open_dagster_pipes() as pipes:
        yield lambda report: _report(pipes, action, report)


def _report(pipes: PipesContext, action: Action, report: TableReport) -> None:
    if report.error:
        pipes.log.error(f"{report.name}: {report.error}")
        return
    pipes.log.info(f"{report.name}: {report.done}")
    pipes.report_asset_materialization(
        asset_key=asset_name(report.name, action),
        metadata={
            **report.numbers,
            "done": report.done,
            "skipped": {"raw_value": dict(report.skipped), "type": "json"},
        },
    )


def asset_name(stream: str, action: Action) -> str:
    """Name of the asset that stands for a table's compaction or vacuum."""
    return f"{stream}_{'compaction' if action == 'compact' else 'vacuum'}"


def first_error(reports: Sequence[TableReport]) -> IngestError | None:
    """What decides the exit code."""
    return next((report.error for report in reports if report.error), None)


def _end(number: int, _frame: object) -> None:
    # Raised wherever the main thread is, also while it waits for the JVM; the session is stopped
    # on the way out, and the JVM ends with this process in any case: its standard input closes.
    raise SystemExit(128 + number)


def _spec(target: str) -> StreamSpec:
    name, _, path = target.partition("=")
    return load_spec(Path(path), os.environ, name)


@click.command(help=__doc__)
@click.argument("action", type=click.Choice(["compact", "vacuum"]))
@click.argument("targets", nargs=-1, required=True, metavar="NAME=PATH...")
@click.option("--dry-run", is_flag=True, help="Plan only; nothing is changed.")
@click.option("--log-dir", type=click.Path(path_type=Path), help="Default: where all drivers log.")
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
@click.option("--debug", is_flag=True, help="Log more.")
def main(
    action: Action,
    targets: tuple[str, ...],
    *,
    dry_run: bool,
    log_dir: Path | None,
    log_json: bool,
    debug: bool,
) -> None:
    """Entry point of the process."""
    set_up_logging(as_json=log_json, debug=debug)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        specs = [_spec(target) for target in targets]
    except IngestError as error:
        log.error("%s", error)
        sys.exit(error.exit_code)
    give_way(specs)
    run = Run(action, specs, dry_run, VacuumOptions(dry_run=dry_run))
    with reporting(action) as told:
        logs = log_dir.absolute() if log_dir else log_root(os.environ) / "maintenance"
        failure = first_error(maintain(run, os.environ, logs, told))
    sys.exit(failure.exit_code if failure else 0)


if __name__ == "__main__":
    main()
