"""Reports as Dagster materializations; the UI plots the metadata that are numbers."""

from __future__ import annotations

import dagster as dg

from ingest_platform.components.assets import quarantine_key, table_key
from ingest_platform.model.report import Report
from ingest_platform.model.status import Status
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.rejects import Rejects
from ingest_platform.supervise.shown import Shown


def materialization(
    spec: StreamSpec, report: Report, status: Status, seen_as: Shown
) -> dg.AssetMaterialization:
    """The table's."""
    return dg.AssetMaterialization(
        table_key(spec),
        description=_sentence(report),
        metadata={**_numbers(report), **_texts(spec, report, status, seen_as)},
    )


def quarantine_materialization(spec: StreamSpec, rejects: Rejects) -> dg.AssetMaterialization:
    """The quarantine table's, over all records that it got since the last one."""
    return dg.AssetMaterialization(
        quarantine_key(spec),
        description=f"{rejects.count} records could not be decoded.",
        metadata={
            "rows": rejects.count,
            "ratio": round(rejects.count / max(1, rejects.records), 6),
            "path": spec.table.quarantine,
        },
    )


def _sentence(report: Report) -> str:
    if not report.batches:
        return "Caught up; nothing new to read."
    return f"{report.rows} rows in {report.batches} batches over {report.seconds:.0f} s."


def _numbers(report: Report) -> dict[str, int | float]:
    batch = report.batch_seconds
    return {
        "rows": report.rows,
        "quarantined": report.quarantined,
        "skipped": report.skipped,
        "files": report.files,
        "bytes": report.bytes,
        "batches": report.batches,
        "rows_per_second": round(report.rows_per_second, 3),
        "batch_seconds_p50": round(batch.p50, 3),
        "batch_seconds_p95": round(batch.p95, 3),
        "batch_seconds_max": round(batch.max, 3),
        "lag_records": report.lag_records,
        "lag_seconds": round(report.lag_seconds, 3),
        "table_version": report.table_version,
    }


def _texts(
    spec: StreamSpec, report: Report, status: Status, seen_as: Shown
) -> dict[str, dg.MetadataValue]:
    texts = {
        "state": dg.MetadataValue.text(seen_as.state.value),
        "reason": dg.MetadataValue.text(seen_as.reason),
        "driver": dg.MetadataValue.text(
            f"generation {status.generation}, {status.runs_at.host}:{status.runs_at.pid}"
        ),
        "offsets": dg.MetadataValue.json(report.offsets.to_ledger()),
        "path": dg.MetadataValue.path(spec.table.path),
    }
    if status.runs_at.log:
        texts["log"] = dg.MetadataValue.path(status.runs_at.log)
    return texts
