"""What a driver knows of itself, as its status document says it."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from ingest_platform.errors import IngestError
from ingest_platform.model.offsets import OffsetRanges, Positions
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import (
    AutoCompactionReport,
    BatchReport,
    ErrorReport,
    JvmReport,
    Status,
)

_RECENT_BATCHES: Final = 240


@dataclass
class Progress:
    """The batch thread writes it, the heartbeat reads it."""

    base: Status
    state: StreamState = StreamState.STARTING
    reason: str = "starting Spark"
    recent: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=_RECENT_BATCHES))
    totals: dict[str, int] = field(default_factory=dict)
    read: Positions = field(default_factory=Positions)
    behind: dict[str, int] = field(default_factory=dict)
    oldest_unread_age: float | None = None
    caught_up_at: str | None = None
    error: ErrorReport | None = None
    trigger_seconds: dict[int, float] = field(default_factory=dict[int, float])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def turn(self, state: StreamState, reason: str) -> None:
        """Change state."""
        with self.lock:
            self.state, self.reason = state, reason

    def in_session(self, session: str) -> None:
        """Spark has given the checkpoint its id."""
        with self.lock:
            self.base = replace(self.base, session=session)

    def finished(self, report: BatchReport, ranges: OffsetRanges) -> None:
        """Book one committed batch."""
        with self.lock:
            self.recent.append(report)
            for name in ("rows", "quarantined", "skipped", "files", "bytes"):
                self.totals[name] = self.totals.get(name, 0) + int(getattr(report, name))
            self.totals["batches"] = self.totals.get("batches", 0) + 1
            self._advance(ranges)

    def found_committed(self, ranges: OffsetRanges) -> None:
        """A batch was in the table already."""
        with self.lock:
            self._advance(ranges)

    def compacted(self, report: AutoCompactionReport) -> None:
        """Book the counts of asynchronous auto compaction."""
        with self.lock:
            self.base = replace(self.base, auto_compaction=report)

    def failed(self, error: IngestError, now: datetime) -> None:
        """Say what ends the driver."""
        with self.lock:
            self.state = StreamState.BACKOFF if error.retryable else StreamState.FAILED
            self.reason, self.error = error.what, ErrorReport.of(error, now)

    def _advance(self, ranges: OffsetRanges) -> None:
        # The caller holds the lock.
        merged = {t: dict(ps) for t, ps in self.read.by_topic.items()}
        for r in ranges:
            merged.setdefault(r.topic, {})[r.partition] = r.until
        self.read = Positions(merged)

    def lag_after(self, ranges: OffsetRanges) -> dict[str, int]:
        """The last seen lag, less what `ranges` takes away from it."""
        with self.lock:
            behind = dict(self.behind)
            for r in ranges:
                name = f"{r.topic}-{r.partition}"
                if name in behind:
                    read = self.read.get(r.topic, r.partition) or r.start
                    behind[name] = max(0, behind[name] - (r.until - read))
        return {name: n for name, n in behind.items() if n}

    def status(self, jvm: JvmReport, now: datetime) -> Status:
        """The document as of now."""
        with self.lock:
            recent = tuple(
                replace(b, trigger_seconds=self.trigger_seconds.get(b.id, 0.0)) for b in self.recent
            )
            return replace(
                self.base,
                state=self.state,
                reason=self.reason,
                updated_at=now.isoformat(),
                last_batch=recent[-1] if recent else None,
                recent=recent[-60:],
                totals=dict(self.totals),
                table_version=recent[-1].table_version if recent else None,
                input_rows_per_second=_rate(recent, now),
                processed_rows_per_second=_speed(recent[-5:]),
                offsets={
                    t: {str(p): o for p, o in ps.items()} for t, ps in self.read.by_topic.items()
                },
                behind=dict(self.behind),
                oldest_unread_age=self.oldest_unread_age,
                caught_up_at=self.caught_up_at,
                jvm=jvm,
                error=self.error,
            )


def _rate(recent: tuple[BatchReport, ...], now: datetime) -> float:
    """Records per second that arrived, over the last minute or so of batches."""
    last = recent[-12:]
    if len(last) < 2:
        return 0.0
    span = (now - datetime.fromisoformat(last[0].finished_at)).total_seconds()
    return sum(_records(b) for b in last[1:]) / span if span > 0 else 0.0


def _speed(batches: tuple[BatchReport, ...]) -> float:
    """Records per second of batch time."""
    seconds = sum(b.seconds for b in batches)
    return sum(_records(b) for b in batches) / seconds if seconds else 0.0


def _records(batch: BatchReport) -> int:
    return batch.rows + batch.quarantined + batch.skipped
