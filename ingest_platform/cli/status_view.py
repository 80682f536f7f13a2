"""Streams' overviews, for people: one line each, or everything about one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ingest_platform.cli.overview import Overview
from ingest_platform.model.states import StreamState

_COLOURS = {
    StreamState.RUNNING: "green",
    StreamState.STARTING: "cyan",
    StreamState.DRAINING: "cyan",
    StreamState.DEGRADED: "yellow",
    StreamState.BACKOFF: "yellow",
    StreamState.FAILED: "bold red",
    StreamState.STOPPED: "dim",
}
_FRESHNESS = {"fresh": "green", "warn": "yellow", "fail": "bold red", "unknown": "dim"}
_WIDE = 150  # columns of a terminal that shows every figure


@dataclass(frozen=True)
class _Column:
    """One column: what it shows of a stream; a narrow terminal shows the `always` ones."""

    name: str
    cell: Callable[[Overview], Text]
    always: bool = False
    left: bool = False


def overview_table(streams: Sequence[Overview], width: int = _WIDE) -> RenderableType:
    """All streams, a line each.

    Args:
        streams: In the order of the lines.
        width: Characters per line; fewer than 150 show fewer columns rather than stubs of all.
    """
    if not streams:
        return Text("no streams: make one with dg scaffold defs ingest_platform.KafkaDeltaTable")
    columns = [c for c in _COLUMNS if c.always or width >= _WIDE]
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.name, justify="left" if column.left else "right", no_wrap=True)
    table.add_column("reason", ratio=1)
    for item in streams:
        table.add_row(*(column.cell(item) for column in columns), _reason(item))
    return table


def _reason(item: Overview) -> Text:
    return Text(item.trouble or item.reason, "red" if item.trouble else "")


def details(streams: Sequence[Overview]) -> RenderableType:
    """Everything about each stream, a line per fact."""
    return Group(*(_facts(item) for item in streams))


def _facts(item: Overview) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("stream", Text(item.name, "bold"))
    table.add_row("state", Text(item.state, _COLOURS[item.state]))
    for name, text in _texts(item):
        if text:
            table.add_row(name, Text(text))
    return table


def _texts(item: Overview) -> Iterator[tuple[str, str]]:
    yield "reason", item.reason
    yield "trouble", item.trouble or ""
    if item.error:
        yield "error", f"{item.error.kind}: {item.error.message}"
        yield "remedy", item.error.remedy
    yield "since", item.since or ""
    yield "heartbeat", f"{item.heartbeat_age:.0f} s ago" if item.heartbeat_age is not None else ""
    if item.runs_at:
        yield "runs at", f"{item.runs_at.host}, process {item.runs_at.pid}"
        yield "log", item.runs_at.log
        if item.runs_at.health:
            yield "health", f"{item.runs_at.health}/healthz"
    if item.generation is not None:
        yield "generation", f"{item.generation}, session {item.session}"
    yield "lag", f"{_count(item.lag_records)} records, {_count(item.lag_seconds)} s"
    yield "freshness", item.freshness
    yield "rates", f"{_count(item.rows_in)} rows/s in, {_count(item.rows_out)} rows/s out"
    yield "last batch", _batch_in_full(item)
    yield "table", f"{item.table}, version {_count(item.table_version)}"
    yield "files", _files(item)
    yield "rejects", _ratio(item.quarantine_ratio)
    yield "auto compaction", _auto_compaction(item)
    yield "last compaction", item.compacted_at or "none in the last 2,000 commits"
    yield "last vacuum", item.vacuumed_at or "none in the last 2,000 commits"


def _batch_in_full(item: Overview) -> str:
    batch = item.last_batch
    if batch is None:
        return ""
    phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in batch.phases.items())
    extra = f" ({phases})" if phases else ""
    return (
        f"{batch.id}, finished {batch.finished_at}: {batch.rows:,} rows, {batch.quarantined:,} "
        f"rejects, {batch.files:,} files in {batch.seconds:.2f} s{extra}"
    )


def _auto_compaction(item: Overview) -> str:
    report = item.auto_compaction
    if report is None:
        return ""
    return (
        f"{report.mode}: {report.completed:,} completed, {sum(report.yielded.values()):,} yielded "
        f"to DML, {report.dropped:,} dropped, {report.errors:,} failed"
    )


def _files(item: Overview) -> str:
    if item.files is None:
        return ""
    return f"{item.files:,}, of which {_count(item.small_files)} small; {item.table_bytes:,} bytes"


def _last_batch(item: Overview) -> str:
    batch = item.last_batch
    return f"{batch.rows:,} in {batch.seconds:.1f} s" if batch else "-"


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:,.0f}"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2%}"


def _short_time(text: str | None) -> str:
    """`2026-11-01T10:20:30.5+00:00` as `11-01 10:20`."""
    return "-" if not text else text[5:16].replace("T", " ")


_COLUMNS = (
    _Column("stream", lambda s: Text(s.name, "bold"), always=True, left=True),
    _Column("state", lambda s: Text(s.state, _COLOURS[s.state]), always=True, left=True),
    _Column("since", lambda s: Text(_short_time(s.since)), left=True),
    _Column("lag", lambda s: Text(_count(s.lag_records))),
    _Column("lag s", lambda s: Text(_count(s.lag_seconds), _FRESHNESS[s.freshness]), always=True),
    _Column("in/s", lambda s: Text(_count(s.rows_in))),
    _Column("out/s", lambda s: Text(_count(s.rows_out)), always=True),
    _Column("last batch", lambda s: Text(_last_batch(s)), always=True),
    _Column("version", lambda s: Text(_count(s.table_version))),
    _Column("files", lambda s: Text(_count(s.files)), always=True),
    _Column("small", lambda s: Text(_count(s.small_files))),
    _Column("compacted", lambda s: Text(_short_time(s.compacted_at))),
    _Column("vacuumed", lambda s: Text(_short_time(s.vacuumed_at))),
    _Column("rejects", lambda s: Text(_ratio(s.quarantine_ratio))),
)
