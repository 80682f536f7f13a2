"""The verdicts about a table: each with its reason, and the numbers that it rests on.

A check gives no verdict where it has nothing to go by, as while a driver starts: then the last one
stands, and a planned turnover is no alarm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum

from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport, Status
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.materialize import lag_seconds
from ingest_platform.supervise.phrases import ago
from ingest_platform.supervise.shown import Shown

LAG, QUARANTINE, BALANCE = "lag", "quarantine_ratio", "ledger_balance"
DRIVER, SMALL_FILES = "driver_alive", "small_files"

DESCRIPTIONS: Mapping[str, str] = {
    LAG: "The oldest record that is not in the table is younger than the freshness limits.",
    QUARANTINE: "Few of the last batches' records could not be decoded.",
    BALANCE: "The ledgers of the last commits add up, and each begins where the one before ended.",
    DRIVER: "A driver is at work, or none is wanted.",
    SMALL_FILES: "The table has few small files, so compaction keeps up.",
}


class Level(IntEnum):
    """How bad it is; more is worse."""

    PASSED = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True)
class CheckResult:
    """One verdict; `figures` are what the UI plots."""

    name: str
    level: Level
    reason: str
    figures: Mapping[str, int | float] = field(default_factory=dict[str, int | float])


@dataclass(frozen=True)
class Observed:
    """What verdicts about the driver rest on.

    Attributes:
        status: The driver's last status document.
        quiet: How long it has not changed.
        shown: State and reason, as the supervisor tells them.
    """

    status: Status | None
    quiet: timedelta
    shown: Shown


def driver_checks(spec: StreamSpec, seen: Observed) -> list[CheckResult]:
    """What needs no look at the table: lag, quarantine ratio, driver."""
    found = (_lag(spec, seen), _quarantine(spec, seen.status), _driver(seen))
    return [result for result in found if result]


def small_files(spec: StreamSpec, files: int, small: int, size: int) -> CheckResult:
    """About the table's files: how many, how many of them small, and their bytes."""
    limits = spec.checks
    level = _level(small, limits.small_files_warn, limits.small_files_fail)
    reason = f"{small} of {files} files are smaller than 32 MB"
    if level:
        reason += f", at most {_limit(level, limits.small_files_warn, limits.small_files_fail)} "
        reason += "are well: compaction does not run, or does not keep up"
    return CheckResult(
        SMALL_FILES, level, reason, {"files": files, "small_files": small, "bytes": size}
    )


def _lag(spec: StreamSpec, seen: Observed) -> CheckResult | None:
    status = seen.status
    lag = lag_seconds(status, seen.quiet) if status else None
    if status is None or lag is None:
        return None
    warn, fail = spec.freshness.warn.total_seconds(), spec.freshness.fail.total_seconds()
    level = _level(lag, warn, fail)
    reason = f"the oldest unread record is {ago(timedelta(seconds=lag))} old"
    if lag == 0:
        reason = "caught up"
    if level:
        limit = timedelta(seconds=_limit(level, warn, fail))
        reason += f", at most {ago(limit)} are well; {seen.shown.reason}"
    figures = {"lag_seconds": round(lag, 3), "lag_records": status.records_behind}
    return CheckResult(LAG, level, reason, figures)


def _quarantine(spec: StreamSpec, status: Status | None) -> CheckResult | None:
    batches = status.recent if status else ()
    records, rejected = sum(map(_records, batches)), sum(b.quarantined for b in batches)
    if not records:
        return None
    ratio, limits = rejected / records, spec.checks
    level = Level.PASSED
    if rejected:
        level = _level(ratio, limits.quarantine_warn, limits.quarantine_fail)
    reason = f"{rejected} of the last {records} records could not be decoded ({ratio:.2%})"
    if level:
        limit = _limit(level, limits.quarantine_warn, limits.quarantine_fail)
        reason += f", less than {limit:.2%} are well; see `reason` in {spec.table.quarantine}"
    figures = {"ratio": round(ratio, 6), "quarantined": rejected, "records": records}
    return CheckResult(QUARANTINE, level, reason, figures)


def _driver(seen: Observed) -> CheckResult | None:
    shown, status = seen.shown, seen.status
    level = _of_state(shown)
    if level is None:
        return None
    figures = {
        "generation": status.generation if status else 0,
        "quiet_seconds": round(seen.quiet.total_seconds(), 1),
    }
    return CheckResult(DRIVER, level, f"{shown.state}: {shown.reason}", figures)


def _of_state(shown: Shown) -> Level | None:
    """None for what a turnover passes through; a paused stream is as someone wants it."""
    match shown.state:
        case StreamState.FAILED:
            return Level.ERROR
        case StreamState.BACKOFF:
            return Level.WARN
        case StreamState.RUNNING | StreamState.DEGRADED:
            return Level.WARN if shown.alert else Level.PASSED
        case StreamState.STOPPED if shown.reason.startswith("paused"):
            return Level.PASSED
        case _:
            return None


def _level(value: float, warn: float, fail: float) -> Level:
    if value >= fail:
        return Level.ERROR
    return Level.WARN if value >= warn else Level.PASSED


def _limit(level: Level, warn: float, fail: float) -> float:
    return fail if level is Level.ERROR else warn


def _records(batch: BatchReport) -> int:
    return batch.rows + batch.quarantined + batch.skipped
