"""Valid values with the one field set that a test is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ingest_platform.model.alert import Alert, AlertKind, Severity, Transition
from ingest_platform.model.commit import Commit
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRange, OffsetRanges
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import RunsAt, Status
from ingest_platform.spec import StreamSpec

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def make_spec(**overrides: Any) -> StreamSpec:
    """The smallest spec, with fields replaced."""
    return StreamSpec.model_validate(
        {
            "name": "clicks",
            "source": {"topic": "clicks"},
            "decode": {"schema": "id BIGINT"},
            "table": {"path": "/lake/clicks"},
            **overrides,
        }
    )


def make_status(**overrides: Any) -> Status:
    """A healthy driver's status: caught up, generation 1."""
    fields: dict[str, Any] = {
        "stream": "clicks",
        "session": "5f0c",
        "generation": 1,
        "state": StreamState.RUNNING,
        "started_at": NOW.isoformat(),
        "updated_at": NOW.isoformat(),
        "runs_at": RunsAt(host="worker", pid=17, started_ticks=5.0),
        "oldest_unread_age": 0.0,
    }
    return Status(**{**fields, **overrides})


def make_ledger(batch: int = 0, *, quarantined: int = 0, width: int = 10) -> Ledger:
    """A batch of `width` records of partition 0, following on the batch before."""
    offsets = OffsetRanges((OffsetRange("clicks", 0, batch * width, (batch + 1) * width),))
    return Ledger(
        "clicks",
        "5f0c",
        batch,
        offsets,
        read=width,
        written=width - quarantined,
        quarantined=quarantined,
    )


def make_commit(version: int, **overrides: Any) -> Commit:
    """The commit of batch `version`, made that many seconds after `NOW`."""
    fields: dict[str, Any] = {
        "version": version,
        "timestamp_ms": int(NOW.timestamp() * 1000) + version * 1000,
        "operation": "WRITE",
        "metrics": {"numFiles": 2, "numOutputBytes": 100},
        "ledger": make_ledger(version),
    }
    return Commit(**{**fields, **overrides})


def make_alert(**overrides: Any) -> Alert:
    """A stream that needs a person."""
    fields: dict[str, Any] = {
        "kind": AlertKind.NEEDS_PERSON,
        "severity": Severity.CRITICAL,
        "stream": "clicks",
        "what": "the stream needs a person",
        "since": NOW.isoformat(),
        "command": "ingest-platform stream start clicks",
        "numbers": {"generation": 3, "records behind": 12345},
        "cause": "CheckpointDamagedError: batch 7 is truncated",
    }
    return Alert(**{**fields, **overrides})


def make_transition(number: int = 1, **overrides: Any) -> Transition:
    """The alert is raised; an even number resolves it."""
    return Transition(
        make_alert(**overrides), number, NOW.isoformat(), "well" if number == 2 else ""
    )
