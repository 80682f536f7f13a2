"""The Spark job of a repair: takes out of quarantine and table what lies beyond the cut.

    python -m ingest_platform.drivers.repair PATH/defs.yaml --name NAME --generation N

It carries out the open repair of the stream's journal, under the lease generation that
`ingest-platform repair apply` holds. Exit codes: 0 done; 2, 3, 4 by the error tree.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.termination import leave_last_words
from ingest_platform.drivers.diagnostics import set_up_logging
from ingest_platform.drivers.sessions import session_for
from ingest_platform.errors import DataProblem, IngestError, LeaseLostError
from ingest_platform.maintain.auto_compaction.in_flight import dml_in_flight
from ingest_platform.maintain.repair.journal import RepairJournal
from ingest_platform.model.repair import Removal, RepairPlan, Step
from ingest_platform.spec import StorageEnvironment, StreamSpec, load_spec
from ingest_platform.stream import removal

log = logging.getLogger(__name__)


def run_removal(
    spec: StreamSpec,
    environ: Mapping[str, str],
    generation: int,
    reached: Callable[[str], None] = lambda _: None,
) -> None:
    """Open a session, and take out what the open repair's plan says.

    Args:
        spec: The stream.
        environ: Environment variables.
        generation: Of the lease that the repair holds.
        reached: Told of each commit, so that a fault test can end the process there.

    Raises:
        IngestError: Whatever went wrong; running it again goes on.
    """
    with session_for("repair", spec, environ) as spark:
        remove(spark, spec, environ, generation, reached)


def remove(
    spark: SparkSession,
    spec: StreamSpec,
    environ: Mapping[str, str],
    generation: int,
    reached: Callable[[str], None] = lambda _: None,
) -> None:
    """Take out what the open repair's plan says.

    First no older session can commit any more. Then comes the quarantine: the commit in the table
    is the one that audit and next session go by, so everything else must be over by then.
    """
    objects = object_store(spec.root, StorageEnvironment.from_env(environ))
    journal, leases = RepairJournal(objects, spec.name), LeaseStore(objects, spec.name)
    plan = journal.open_repair()
    if plan is None or not journal.has(plan.record.repair, Step.SETTLED):
        raise DataProblem(
            "there is no repair whose plan is settled",
            where=journal.path,
            remedy=f"begin with: ingest-platform repair plan {spec.name}",
        )

    def fence() -> None:
        lease = leases.current()
        if lease is None or lease.generation != generation or lease.purpose != "repair":
            raise LeaseLostError(
                f"the repair no longer holds the lease (generation {generation})",
                where=f"stream {spec.name}",
                remedy="another `repair apply` took over; look at: ingest-platform repair plan",
            )

    number = plan.record.repair
    removal.close_lineages(spark, spec.table.path, plan.kept_batches, fence)
    _of_quarantine(spark, spec, plan, fence)
    journal.done(number, Step.QUARANTINE, datetime.now(UTC))
    reached(Step.QUARANTINE)
    with dml_in_flight(spec.table.path, state_path=spec.root, environ=environ):
        _of_table(spark, spec, plan, fence)
    journal.done(number, Step.TABLE, datetime.now(UTC))
    reached(Step.TABLE)


def _of_quarantine(
    spark: SparkSession, spec: StreamSpec, plan: RepairPlan, fence: removal.Fence
) -> None:
    path = spec.table.quarantine
    if not DeltaTable.isDeltaTable(spark, path):
        return
    rows = removal.after_batches(plan.kept_batches)
    if plan.by_offset:
        rows = rows | removal.beyond(plan.record.kept, spec.source.all_topics)
    removal.delete_rows(spark, path, rows, plan.record, fence)
    log.info("the quarantine ends where the repair cuts")


def _of_table(
    spark: SparkSession, spec: StreamSpec, plan: RepairPlan, fence: removal.Fence
) -> None:
    path, record = spec.table.path, plan.record
    if plan.removal is Removal.DELETE:
        rows = removal.beyond(record.kept, spec.source.all_topics)
        removal.delete_rows(spark, path, rows, record, fence)
    elif plan.undone:
        removal.restore(spark, path, record, fence)
    else:
        removal.mark(spark, path, record, fence)
    log.info("the table ends where the repair cuts")


@click.command(help=__doc__)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", help="Which stream, when the file declares several.")
@click.option("--generation", type=int, required=True, help="Of the lease that the repair holds.")
@click.option("--debug", is_flag=True, help="Log more, and show stack traces.")
def main(path: Path, name: str | None, generation: int, debug: bool) -> None:
    """Entry point of the process that `repair apply` starts."""
    set_up_logging(as_json=False, debug=debug)
    try:
        run_removal(load_spec(path, os.environ, name), os.environ, generation)
    except IngestError as error:
        leave_last_words(error, os.environ, datetime.now(UTC))
        log.error("%s", error, exc_info=debug)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
