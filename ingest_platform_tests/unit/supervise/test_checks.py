"""Verdicts of the asset checks: numbers, reasons and limits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from ingest_platform.model.offsets import OffsetRange, OffsetRanges
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import BatchReport
from ingest_platform.supervise.balance import Flaw, ledger_balance
from ingest_platform.supervise.checks import (
    CheckResult,
    Level,
    Observed,
    driver_checks,
    small_files,
)
from ingest_platform.supervise.shown import Shown
from ingest_platform_tests.factories import make_commit, make_ledger, make_spec, make_status

HEALTHY = Shown(StreamState.RUNNING, "healthy: generation 1 on worker")


def verdict(name: str, *, shown: Shown = HEALTHY, quiet: float = 0, **status) -> CheckResult | None:
    """The verdict of one check about a driver with this status."""
    seen = Observed(make_status(**status), timedelta(seconds=quiet), shown)
    found = [r for r in driver_checks(make_spec(), seen) if r.name == name]
    return found[0] if found else None


@pytest.mark.parametrize(
    ("age", "quiet", "level"),
    [(0, 0, 0), (899, 0, 0), (900, 0, 1), (840, 60, 1), (3600, 0, 2)],
)
def test_lag_is_judged_by_the_freshness_limits(age, quiet, level):
    """A status that is a minute old says how it was then: the lag may have grown by a minute."""
    found = verdict("lag", oldest_unread_age=float(age), quiet=quiet, behind={"t-0": 7})
    assert found is not None
    assert found.level == level
    assert found.figures == {"lag_seconds": age + quiet, "lag_records": 7}
    if level:
        assert "at most" in found.reason
        assert HEALTHY.reason in found.reason


def test_lag_that_is_not_known_is_no_verdict():
    """A driver that just took over has not asked the broker yet: a turnover is no alarm."""
    assert verdict("lag", oldest_unread_age=None) is None


@pytest.mark.parametrize(("rejected", "level"), [(0, 0), (9, 0), (10, 1), (99, 1), (100, 2)])
def test_quarantine_ratio_over_the_last_batches(rejected, level):
    batch = BatchReport(id=1, rows=1000 - rejected, quarantined=rejected)
    found = verdict("quarantine_ratio", recent=(batch,))
    assert found is not None
    assert found.level == level
    assert found.figures == {
        "ratio": rejected / 1000,
        "quarantined": rejected,
        "records": 1000,
    }
    assert f"{rejected} of the last 1000 records" in found.reason


def test_idle_driver_has_no_quarantine_ratio():
    assert verdict("quarantine_ratio") is None


@pytest.mark.parametrize(
    ("state", "reason", "level"),
    [
        (StreamState.RUNNING, "healthy", 0),
        (StreamState.DEGRADED, "planned turnover: generation 1 is 20 h old", 0),
        (StreamState.BACKOFF, "backoff: generation 1 is dead", 1),
        (StreamState.FAILED, "needs a person", 2),
        (StreamState.STOPPED, "paused by ann since noon", 0),
        (StreamState.STOPPED, "never started", None),
        (StreamState.STARTING, "launching: run 17", None),
        (StreamState.DRAINING, "draining", None),
    ],
)
def test_driver_by_state(state, reason, level):
    """What a planned turnover passes through is no verdict, so it tells nothing."""
    found = verdict("driver_alive", shown=Shown(state, reason))
    assert (found.level if found else None) == level
    if found:
        assert found.reason == f"{state}: {reason}"
        assert found.figures == {"generation": 1, "quiet_seconds": 0.0}


def test_hung_driver_warns_before_it_is_replaced():
    found = verdict("driver_alive", shown=Shown(StreamState.DEGRADED, "hung", alert=True))
    assert found is not None
    assert found.level is Level.WARN


@pytest.mark.parametrize(("small", "level"), [(4999, 0), (5000, 1), (50_000, 2)])
def test_small_files(small, level):
    found = small_files(make_spec(), files=60_000, small=small, size=10**9)
    assert found.level == level
    assert found.figures == {"files": 60_000, "small_files": small, "bytes": 10**9}
    assert found.reason.startswith(f"{small} of 60000 files are smaller than 32 MB")


def test_limits_are_the_specs():
    with pytest.raises(ValidationError, match="quarantine_warn <= quarantine_fail"):
        make_spec(checks={"quarantine_warn": 0.2})
    spec = make_spec(checks={"small_files_warn": 3})
    assert small_files(spec, files=3, small=3, size=3).level is Level.WARN


def test_reports_must_come_before_the_freshness_warning():
    """The policy's clock is the time of the last report."""
    assert make_spec().report_every == timedelta(minutes=7.5)
    assert make_spec(freshness={"warn": "2m"}).report_every == timedelta(minutes=1)
    assert make_spec(freshness={"warn": "4h", "fail": "9h"}).report_every == timedelta(minutes=8)
    with pytest.raises(ValidationError, match="`report_every` must be shorter"):
        make_spec(report_every="15 minutes")


class TestBalance:
    """Ledgers of successive commits against each other."""

    def test_batches_that_follow_on_each_other(self):
        result, flaw = ledger_balance("clicks", [make_commit(v) for v in range(5)])
        assert flaw is None
        assert result is not None
        assert result.level is Level.PASSED
        assert result.figures == {
            **{"commits": 5, "read": 50, "written": 50},
            **{"quarantined": 0, "skipped": 0},
        }

    @pytest.mark.parametrize(
        ("version", "said"),
        [(3, "offsets 10 to 29 are missing"), (0, "offsets 0 to 9 are there twice")],
    )
    def test_gap_and_overlap(self, version, said):
        commits = [make_commit(0), make_commit(1, ledger=make_ledger(version))]
        result, flaw = ledger_balance("clicks", commits)
        assert flaw is not None
        assert result is not None
        assert result.level is Level.ERROR
        assert said in result.reason
        assert "ingest-platform audit clicks --data --topic" in result.reason

    def test_counts_that_do_not_add_up(self):
        ledger = make_ledger(0)
        wrong = type(ledger)(ledger.stream, ledger.session, 0, ledger.offsets, read=9, written=10)
        result, _ = ledger_balance("clicks", [make_commit(0, ledger=wrong)])
        assert result is not None
        assert "version 0, batch 0: read 9 != written 10" in result.reason

    def test_flaw_outlasts_the_window_until_another_session_begins(self):
        """Nothing that is wrong in a log is mended by more commits."""
        flaw = Flaw("5f0c", "version 3: offsets 7 to 8 are missing")
        result, still = ledger_balance("clicks", [make_commit(v) for v in range(50, 60)], flaw)
        assert still == flaw
        assert result is not None
        assert flaw.what in result.reason
        offsets = OffsetRanges((OffsetRange("clicks", 0, 600, 610),))
        repaired = type(make_ledger())("clicks", "new", 0, offsets, read=10, written=10)
        result, gone = ledger_balance("clicks", [make_commit(60, ledger=repaired)], flaw)
        assert gone is None
        assert result is not None
        assert result.level is Level.PASSED

    def test_restore_takes_commits_back(self):
        commits = [
            make_commit(0),
            make_commit(1),
            make_commit(2, operation="RESTORE", ledger=None, restored_to=0),
            make_commit(3, ledger=make_ledger(1)),
        ]
        result, flaw = ledger_balance("clicks", commits)
        assert flaw is None
        assert result is not None

    def test_foreign_commits_are_no_verdict(self):
        assert ledger_balance("clicks", [make_commit(0, ledger=None)]) == (None, None)
        assert ledger_balance("other", [make_commit(0)]) == (None, None)
