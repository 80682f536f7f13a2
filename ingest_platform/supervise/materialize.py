"""When a table is reported as materialized, and what the report says.

At most one report per `report_every`, aggregated: Dagster's event log has no retention, so one
event per batch would fill it. None while the table's lag exceeds the freshness warning: the
freshness policy's clock is the time of the last report, so freshness then measures lag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ingest_platform.model.commit import Commit
from ingest_platform.model.offsets import OffsetRange, OffsetRanges
from ingest_platform.model.report import Quantiles, Report
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport, Status
from ingest_platform.model.times import parse_time
from ingest_platform.spec import StreamSpec


@dataclass(frozen=True)
class Reported:
    """How far reports went: `at` is ISO 8601, empty before the first; `version` is the table's."""

    at: str = ""
    version: int = -1


@dataclass(frozen=True)
class Evidence:
    """What a report may rest on.

    Attributes:
        status: The driver's last status document.
        quiet: How long the document has not changed, by the supervisor's own watching.
        moving: Whether the supervisor has ever seen it change; before that it may be years old.
        now: The supervisor's time.
    """

    status: Status | None
    quiet: timedelta
    moving: bool
    now: datetime


_LIVE = timedelta(seconds=60)


def not_due(spec: StreamSpec, reported: Reported, found: Evidence) -> str | None:
    """Why no report is due, or None when one is, if `nothing_new` does not object.

    Asked first, because it needs no look into the table's log.
    """
    return _too_early(spec, reported, found) or _lag_not_proved(spec, found)


def nothing_new(reported: Reported, found: Evidence, table_version: int | None) -> str | None:
    """Why there is nothing to report at this version of the table, or None when there is."""
    if table_version is None:
        return "there is no table yet"
    if table_version == reported.version and not _verified_idle(found):
        return "nothing was committed, and the topic is not known to be idle"
    return None


def _too_early(spec: StreamSpec, reported: Reported, found: Evidence) -> str | None:
    last = parse_time(reported.at)
    wait = last + spec.report_every - found.now if last else timedelta(0)
    # A clock that was set back by an hour must not silence reports for an hour.
    if timedelta(0) < wait <= spec.report_every:
        return f"the next report is due in {wait.total_seconds():.0f} s"
    return None


def _lag_not_proved(spec: StreamSpec, found: Evidence) -> str | None:
    if not found.moving or found.status is None:
        return "no heartbeat has been seen yet"
    lag = lag_seconds(found.status, found.quiet)
    if lag is None:
        return "the table's lag is not known"
    if lag > spec.freshness.warn.total_seconds():
        return f"the table is {lag:.0f} s behind, beyond the freshness warning"
    return None


def lag_seconds(status: Status, quiet: timedelta) -> float | None:
    """Age of the oldest record not yet in the table, in seconds; None when it is not known.

    A status that is `quiet` old says how it was then; the lag may have grown by as much. Where the
    driver does not know the age, the backlog over the rate of arrival is about it.
    """
    if status.oldest_unread_age is not None:
        return status.oldest_unread_age + quiet.total_seconds()
    if status.behind and status.input_rows_per_second > 0:
        return status.records_behind / status.input_rows_per_second + quiet.total_seconds()
    return None


def first_reported(commits: Sequence[Commit], started_ms: int) -> Reported:
    """Where reports begin for a table that has none: at the start of its present driver.

    Otherwise the first report after a deployment would add up months of commits.
    """
    before = [c.version for c in commits if c.timestamp_ms < started_ms]
    return Reported(version=max(before, default=-1))


def report(
    reported: Reported, found: Evidence, commits: Sequence[Commit], status: Status
) -> Report:
    """Aggregate the commits above `reported.version`; to be called when a report is due."""
    ledgers = [c.ledger for c in commits if c.ledger]
    mine = [c for c in commits if c.ledger]
    version = max([reported.version, *(c.version for c in commits)])
    started = reported.at or status.started_at
    batches = {b.table_version: b for b in status.recent if b.table_version is not None}
    return Report(
        from_version=reported.version,
        table_version=version,
        seconds=_seconds_since(started, found.now),
        batches=len(ledgers),
        rows=sum(ledger.written for ledger in ledgers),
        quarantined=sum(ledger.quarantined for ledger in ledgers),
        skipped=sum(ledger.skipped for ledger in ledgers),
        files=sum(_files(c, batches) for c in mine),
        bytes=sum(c.metrics.get("numOutputBytes", 0) for c in mine),
        offsets=_merged([r for ledger in ledgers for r in ledger.offsets]),
        batch_seconds=Quantiles.of(
            [b.seconds for v, b in batches.items() if reported.version < v <= version]
        ),
        lag_records=status.records_behind,
        lag_seconds=lag_seconds(status, found.quiet) or 0.0,
    )


def _verified_idle(found: Evidence) -> bool:
    status = found.status
    return (
        status is not None
        and status.state is StreamState.RUNNING
        and status.oldest_unread_age == 0
        and found.quiet < _LIVE
    )


def _files(commit: Commit, batches: Mapping[int, BatchReport]) -> int:
    """Files of a commit: by the name of its operation's metric, or as the driver counted them."""
    for name in ("numAddedFiles", "numFiles", "num_added_files"):
        if name in commit.metrics:
            return commit.metrics[name]
    batch = batches.get(commit.version)
    return batch.files if batch else 0


def _merged(ranges: Sequence[OffsetRange]) -> OffsetRanges:
    merged: dict[tuple[str, int], OffsetRange] = {}
    for r in ranges:
        known = merged.get((r.topic, r.partition), r)
        merged[r.topic, r.partition] = OffsetRange(
            r.topic, r.partition, min(known.start, r.start), max(known.until, r.until)
        )
    return OffsetRanges(tuple(sorted(merged.values())))


def _seconds_since(text: str, now: datetime) -> float:
    time = parse_time(text)
    return max(0.0, (now - time).total_seconds()) if time else 0.0
