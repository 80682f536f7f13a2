"""What Dagster's own records tell: freshness, checks, failed runs.

The newest record of each is read, rather than the stream of events with a cursor: a state that is
read again does no harm, one that was missed is seen at the next look, and recovery needs no event.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus,
)
from dagster._core.storage.tags import WILL_RETRY_TAG

from ingest_platform.components import tags
from ingest_platform.model.alert import Severity
from ingest_platform.supervise.alerting.facts import CheckVerdict, LagVerdict, RunOutcome

if TYPE_CHECKING:
    from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph

_STATES = {
    FreshnessState.PASS: None,
    FreshnessState.WARN: Severity.WARNING,
    FreshnessState.FAIL: Severity.CRITICAL,
}
_JUDGED = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
_AT_FIRST = timedelta(hours=1)  # what is older when the sensor first looks is history
_OVERLAP = timedelta(seconds=10)  # runs are stored in another order than they ended in
_RUNS = 500


def stream_of(key: dg.AssetKey, streams: Collection[str]) -> str:
    """The stream that an asset belongs to: `clicks`, `clicks_quarantine`; empty for none."""
    mine = (n for n in streams for part in key.path if part == n or part.startswith(f"{n}_"))
    return max(mine, key=len, default="")


def lag_verdicts(
    instance: dg.DagsterInstance, graph: BaseAssetGraph, streams: Collection[str]
) -> dict[str, LagVerdict]:
    """Freshness of the tables, by stream."""
    keys = [
        dg.AssetKey([name])
        for name in streams
        if graph.has(dg.AssetKey([name])) and graph.get(dg.AssetKey([name])).freshness_policy
    ]
    found = instance.get_freshness_state_records(keys) if keys else {}
    return {
        key.path[-1]: LagVerdict(_STATES[record.freshness_state], record.updated_at)
        for key, record in found.items()
        if record.freshness_state in _STATES
    }


def check_verdicts(
    instance: dg.DagsterInstance, graph: BaseAssetGraph, streams: Collection[str]
) -> dict[str, list[CheckVerdict]]:
    """The last verdict of every check on the streams' assets, by stream."""
    storage = instance.event_log_storage
    keys = [key for key in graph.asset_check_keys if stream_of(key.asset_key, streams)]
    found: dict[str, list[CheckVerdict]] = {}
    for key, latest in storage.get_latest_asset_check_execution_by_key(keys).items():
        record: AssetCheckExecutionRecord | None = latest
        if latest.status not in _JUDGED:  # one is under way: the last verdict stands until then
            history = storage.get_asset_check_execution_history(key, limit=1, status=_JUDGED)
            record = history[0] if history else None
        verdict = _verdict(record) if record else None
        if verdict:
            found.setdefault(stream_of(key.asset_key, streams), []).append(verdict)
    return found


def _verdict(record: AssetCheckExecutionRecord) -> CheckVerdict | None:
    event = record.event.dagster_event if record.event else None
    if event is None:
        return None
    told = event.asset_check_evaluation_data
    warns = told.severity is dg.AssetCheckSeverity.WARN
    severity = Severity.WARNING if warns else Severity.ERROR
    return CheckVerdict(
        asset=record.key.asset_key.to_user_string(),
        name=record.key.name,
        severity=None if told.passed else severity,
        since=datetime.fromtimestamp(record.create_timestamp, UTC),
        reason=told.description or "",
    )


def run_outcomes(
    instance: dg.DagsterInstance, streams: Collection[str], until: float, now: datetime
) -> tuple[list[RunOutcome], float]:
    """The last outcome of each of the streams' jobs that finished a run.

    Args:
        instance: Where the runs are.
        streams: Names.
        until: What an earlier call returned: runs that were updated before are known; 0 at first.
        now: The present time.

    Returns:
        The outcomes, and the time to go on from; both seconds since the epoch.
    """
    since = datetime.fromtimestamp(until, UTC) - _OVERLAP if until else now - _AT_FIRST
    records = instance.get_run_records(
        dg.RunsFilter(statuses=_FINISHED, updated_after=since),
        limit=_RUNS,
        order_by="update_timestamp",
        ascending=True,
    )
    last: Mapping[tuple[str, str], tuple[dg.RunRecord, str]] = {
        (record.dagster_run.job_name, stream): (record, stream)
        for record, stream in _ours(records, streams)
    }
    newest = max((_stamp(record) for record in records), default=until or since.timestamp())
    return [_outcome(instance, record, stream) for record, stream in last.values()], newest


def _ours(
    records: Iterable[dg.RunRecord], streams: Collection[str]
) -> Iterator[tuple[dg.RunRecord, str]]:
    """Runs about a stream, but for what the supervisor asked for: it tells of those itself."""
    for record in sorted(records, key=lambda r: r.end_time or 0.0):
        run = record.dagster_run
        failed = run.status is dg.DagsterRunStatus.FAILURE
        again = run.tags.get(WILL_RETRY_TAG) == "true"
        stream = _stream_of_run(run, streams)
        if stream and not (failed and (tags.REASON in run.tags or again)):
            yield record, stream


def _stream_of_run(run: dg.DagsterRun, streams: Collection[str]) -> str:
    tagged = run.tags.get(tags.STREAM, "")
    if tagged in streams:
        return tagged
    checks = (key.asset_key for key in run.asset_check_selection or ())
    found = (stream_of(key, streams) for key in (*(run.asset_selection or ()), *checks))
    return min(filter(None, found), default="")


def _outcome(instance: dg.DagsterInstance, record: dg.RunRecord, stream: str) -> RunOutcome:
    run, failed = record.dagster_run, record.dagster_run.status is dg.DagsterRunStatus.FAILURE
    return RunOutcome(
        job=run.job_name,
        run_id=run.run_id,
        failed=failed,
        ended_at=datetime.fromtimestamp(record.end_time or _stamp(record), UTC),
        stream=stream,
        message=_message(instance, run.run_id) if failed else "",
    )


def _message(instance: dg.DagsterInstance, run_id: str) -> str:
    """Why the run failed: the step's own error, or what Dagster says of the run."""
    for kind in (dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE):
        for found in instance.get_records_for_run(run_id, of_type=kind, limit=1).records:
            event = found.event_log_entry.dagster_event
            if event is None:
                continue
            if event.is_step_failure:
                data = event.step_failure_data
                told = data.user_failure_data.description if data.user_failure_data else None
                error = data.error
                while error and error.cause:
                    error = error.cause
                return told or (error.message.strip() if error else "")
            return event.message or ""
    return ""


def _stamp(record: dg.RunRecord) -> float:
    return record.update_timestamp.timestamp()
