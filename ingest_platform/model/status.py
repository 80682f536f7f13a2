"""The status document: what a driver says of itself, at every batch and at least every 10 s."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Self

from ingest_platform.errors import IngestError
from ingest_platform.model.states import StreamState


@dataclass(frozen=True)
class _Document:
    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """Build from JSON, ignoring fields of newer versions (a rolling upgrade has both)."""
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in raw.items() if k in known})


@dataclass(frozen=True)
class RunsAt(_Document):
    """Where the driver runs, precisely enough to find or end it.

    `started_ticks` is the kernel's start time of the process: a pid alone may be reused. A driver
    on Kubernetes is found by its `job` and `namespace`; its `host` is then the pod.
    """

    launcher: str = "local"
    host: str = ""
    pid: int = 0
    started_ticks: float = 0.0
    log: str = ""
    ui: str | None = None
    gc_log: str | None = None
    heap_dumps: str | None = None
    health: str | None = None  # address of /healthz and /metrics
    job: str = ""
    namespace: str = ""

    @property
    def name(self) -> str:
        """For people."""
        return f"job {self.namespace}/{self.job}" if self.job else f"process {self.pid}"

    def same_process(self, other: RunsAt) -> bool:
        """Whether both name one process, whatever else they know of it."""
        if self.job or other.job:
            return (self.namespace, self.job) == (other.namespace, other.job)
        return (self.launcher, self.host, self.pid, self.started_ticks) == (
            other.launcher,
            other.host,
            other.pid,
            other.started_ticks,
        )


@dataclass(frozen=True)
class BatchReport(_Document):
    """One finished micro-batch. Durations are seconds; times are ISO 8601 UTC.

    `seconds` is the platform's part, by `phases`; `trigger_seconds` is the whole of it as Spark
    measures it, planning and checkpoint included, and 0 until Spark has reported it.
    """

    id: int = -1
    finished_at: str = ""
    rows: int = 0
    quarantined: int = 0
    skipped: int = 0
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    trigger_seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    table_version: int | None = None


@dataclass(frozen=True)
class JvmReport(_Document):
    """Memory in bytes; `gc_seconds` is the total since the JVM started."""

    heap_used: int = 0
    heap_after_gc: int = 0
    heap_max: int = 0
    gc_seconds: float = 0.0
    gc_count: int = 0


@dataclass(frozen=True)
class AutoCompactionReport(_Document):
    """Asynchronous auto compaction of the stream's table; counts since the driver started.

    Attributes:
        mode: `async`, or `inline` while it has fallen back.
        waiting: Tables in the queue now.
        running: Attempts at work now.
        submitted: Commits that put the table into the queue.
        coalesced: Commits after which it waited there already.
        dropped: Commits for which the queue had no room.
        completed: Attempts that committed an OPTIMIZE.
        idle: Attempts that found too few small files, or those merged by another OPTIMIZE.
        yielded: Attempts that yielded to DML, by phase: `at_dequeue`, `mid_flight`,
            `before_commit`, `conflict`.
        errors: Attempts that failed otherwise; `last_error` is the last one's message.
        cut_off: Attempts that the driver's end cut off.
        fallbacks: How often compaction went back to inline.
        heals: How often it got through again afterwards.
        files_removed: Small files that were merged.
        files_added: Files that were written for them.
        seconds: Duration of the completed attempts, in all.
    """

    mode: str = "async"
    waiting: int = 0
    running: int = 0
    submitted: int = 0
    coalesced: int = 0
    dropped: int = 0
    completed: int = 0
    idle: int = 0
    yielded: Mapping[str, int] = field(default_factory=dict[str, int])
    errors: int = 0
    cut_off: int = 0
    fallbacks: int = 0
    heals: int = 0
    files_removed: int = 0
    files_added: int = 0
    seconds: float = 0.0
    last_error: str | None = None


@dataclass(frozen=True)
class ErrorReport(_Document):
    """The last error, as the error tree says it."""

    kind: str = ""
    message: str = ""
    remedy: str = ""
    retryable: bool = False
    at: str = ""

    @classmethod
    def of(cls, error: IngestError, now: datetime) -> Self:
        """The report of an error that was met `now`."""
        kind = type(error).__name__
        return cls(kind, error.what, error.remedy, error.retryable, now.isoformat())


@dataclass(frozen=True)
class Status(_Document):
    """One stream's status document.

    Attributes:
        behind: Offsets behind latest, by `topic-partition`.
        oldest_unread_age: Seconds since the oldest record not yet in the table was produced; 0
            when the stream has verified that it is caught up; None when it is not known.
        caught_up_at: When the driver last saw that nothing was unread.
        recent: The last batches (newest last), enough for aggregation between two sensor ticks.
        totals: Since the driver started: rows, quarantined, skipped, files, bytes, batches.
        auto_compaction: None unless the table's auto compaction is asynchronous.
    """

    stream: str = ""
    session: str = ""
    generation: int = 0
    state: StreamState = StreamState.STARTING
    reason: str = ""
    started_at: str = ""
    updated_at: str = ""
    runs_at: RunsAt = field(default_factory=RunsAt)
    table: str = ""
    table_version: int | None = None
    last_batch: BatchReport | None = None
    recent: tuple[BatchReport, ...] = ()
    totals: Mapping[str, int] = field(default_factory=dict[str, int])
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    behind: Mapping[str, int] = field(default_factory=dict[str, int])
    oldest_unread_age: float | None = None
    caught_up_at: str | None = None
    jvm: JvmReport = field(default_factory=JvmReport)
    auto_compaction: AutoCompactionReport | None = None
    error: ErrorReport | None = None

    @property
    def records_behind(self) -> int:
        """Offsets behind latest over all partitions."""
        return sum(self.behind.values())

    def to_json(self) -> str:
        """The document, one JSON object."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes | None) -> Status | None:
        """Read a document; None for one that is missing, torn or not a status document."""
        if not text:
            return None
        try:
            raw = json.loads(text)
            return cls._from_raw(raw)
        except (ValueError, TypeError, AttributeError):
            return None  # torn or foreign: the next one, seconds later, will be whole

    @classmethod
    def _from_raw(cls, raw: dict[str, Any]) -> Status:
        last, error, auto = (raw.get(key) for key in ("last_batch", "error", "auto_compaction"))
        parts = {
            "state": StreamState(raw.get("state", StreamState.STARTING)),
            "runs_at": RunsAt.from_dict(raw.get("runs_at") or {}),
            "last_batch": BatchReport.from_dict(last) if last else None,
            "recent": tuple(BatchReport.from_dict(b) for b in raw.get("recent", ())),
            "jvm": JvmReport.from_dict(raw.get("jvm") or {}),
            "auto_compaction": AutoCompactionReport.from_dict(auto) if auto else None,
            "error": ErrorReport.from_dict(error) if error else None,
        }
        return cls.from_dict({**raw, **parts})
