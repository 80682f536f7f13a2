"""Streams' overviews, for people: one line each, or everything about one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
_COLUMNS = ("lag", "lag s", "in/s", "out/s", "last batch", "version", "files", "small", "rejects")


def overview_table(streams: Sequence[Overview]) -> RenderableType:
    """All streams, a line each."""
    if not streams:
        return Text("no streams: make one with dg scaffold defs ingest_platform.KafkaDeltaTable")
    table = Table(box=None, pad_edge=False)
    for name in ("stream", "state", "since"):
        table.add_column(name, no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("reason", ratio=1)
    for item in streams:
        table.add_row(*_cells(item))
    return table


def _cells(item: Overview) -> Iterator[Text]:
    yield Text(item.name, "bold")
    yield Text(item.state, _COLOURS[item.state])
    yield Text(_short_time(item.since))
    yield Text(_count(item.lag_records))
    yield Text(_count(item.lag_seconds), _FRESHNESS[item.freshness])
    yield Text(_count(item.rows_in))
    yield Text(_count(item.rows_out))
    yield Text(_last_batch(item))
    yield Text(_count(item.table_version))
    yield Text(_count(item.files))
    yield Text(_count(item.small_files))
    yield Text(_ratio(item.quarantine_ratio))
    yield Text(item.trouble or item.reason, "red" if item.trouble else "")


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
    if item.generation is not None:
        yield "generation", f"{item.generation}, session {item.session}"
    yield "lag", f"{_count(item.lag_records)} records, {_count(item.lag_seconds)} s"
    yield "freshness", item.freshness
    yield "rates", f"{_count(item.rows_in)} rows/s in, {_count(item.rows_out)} rows/s out"
    yield "last batch", _batch_in_full(item)
    yield "table", f"{item.table}, version {_count(item.table_version)}"
    yield "files", _files(item)
    yield "rejects", _ratio(item.quarantine_ratio)
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
