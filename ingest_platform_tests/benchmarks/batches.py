"""How long each micro-batch took, by three clocks.

`checkpoint`: from the moment at which Spark's `offsets/N` was written to that of `commits/N`. Seen
from outside, by file times, in the same way for every Spark program; it leaves out the look-up of
the newest offsets. `trigger`: Spark's own `durationMs.triggerExecution`, the whole of a batch.
`own`: what the platform's driver books for its function of the batch, with its phases.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

Clock = Literal["checkpoint", "trigger", "own"]


@dataclass(frozen=True)
class Batch:
    """One finished batch.

    Attributes:
        id: Spark's number.
        ended_at: Seconds since 1970.
        seconds: Duration by clock; a clock that a program does not have is missing.
        phases: Seconds by phase, where the program says it.
        records: Where the program says it.
    """

    id: int
    ended_at: float
    seconds: Mapping[Clock, float]
    phases: Mapping[str, float] = field(default_factory=dict)
    records: int | None = None


class BatchSource(Protocol):
    """Grows while a contender runs; it must be looked at every few seconds."""

    def look(self) -> None:
        """Take in what is new."""
        ...

    def batches(self) -> dict[int, Batch]:
        """All seen so far, by number."""
        ...


class CheckpointClock:
    """Reads the times of a local checkpoint's files, before Spark removes the old ones."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._started: dict[int, float] = {}
        self._ended: dict[int, float] = {}

    def look(self) -> None:
        """Take in what is new."""
        _note_times(self._checkpoint / "offsets", self._started)
        _note_times(self._checkpoint / "commits", self._ended)

    def batches(self) -> dict[int, Batch]:
        """Those that were begun and ended under our eyes."""
        return {
            number: Batch(number, ended, {"checkpoint": ended - self._started[number]})
            for number, ended in self._ended.items()
            if number in self._started
        }


class StatusReports:
    """Batch reports of the platform's status document, and what it says of the JVM's heap."""

    def __init__(self, status: Path) -> None:
        self._status = status
        self._batches: dict[int, Batch] = {}
        self.heap: dict[float, dict[str, float]] = {}

    def look(self) -> None:
        """Take in what is new."""
        try:
            document = json.loads(self._status.read_bytes())
        except (OSError, ValueError):
            return  # not there yet
        for report in document.get("recent") or ():
            self._batches[report["id"]] = _from_report(report)
        jvm = document.get("jvm") or {}
        if jvm.get("heap_used"):
            self.heap[_epoch(document["updated_at"])] = jvm

    def batches(self) -> dict[int, Batch]:
        """All that some document still knew."""
        return self._batches


class ProgressFile:
    """Spark's progress reports, one JSON object a line, as the plain script writes them."""

    def __init__(self, progress: Path) -> None:
        self._progress = progress

    def look(self) -> None:
        """Nothing to do: the file keeps everything."""

    def batches(self) -> dict[int, Batch]:
        """Those with records in them; a trigger that found none is no batch."""
        if not self._progress.exists():
            return {}
        lines = self._progress.read_text(encoding="utf-8").split("\n")[:-1]
        reports = [json.loads(line) for line in lines]
        return {r["batchId"]: _from_progress(r) for r in reports if r["numInputRows"]}


def joined(sources: Iterable[BatchSource]) -> list[Batch]:
    """One record a batch, with the clocks of all sources, by number."""
    merged: dict[int, Batch] = {}
    for source in sources:
        for number, batch in source.batches().items():
            known = merged.get(number)
            merged[number] = (
                batch
                if known is None
                else replace(
                    known,
                    seconds={**known.seconds, **batch.seconds},
                    phases={**known.phases, **batch.phases},
                    records=known.records if batch.records is None else batch.records,
                )
            )
    return [merged[number] for number in sorted(merged)]


def _note_times(folder: Path, times: dict[int, float]) -> None:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name.isdigit() and int(path.name) not in times:
            try:
                times[int(path.name)] = path.stat().st_mtime
            except FileNotFoundError:
                continue  # removed between the two calls


def _from_report(report: Mapping[str, Any]) -> Batch:
    seconds: dict[Clock, float] = {"own": float(report["seconds"])}
    if report.get("trigger_seconds"):
        seconds["trigger"] = float(report["trigger_seconds"])
    return Batch(
        id=int(report["id"]),
        ended_at=_epoch(report["finished_at"]),
        seconds=seconds,
        phases=report.get("phases") or {},
        records=sum(int(report.get(name) or 0) for name in ("rows", "quarantined", "skipped")),
    )


def _from_progress(report: Mapping[str, Any]) -> Batch:
    millis = report["durationMs"]
    whole = millis["triggerExecution"] / 1000
    return Batch(
        id=int(report["batchId"]),
        ended_at=_epoch(report["timestamp"]) + whole,
        seconds={"trigger": whole},
        phases={name: ms / 1000 for name, ms in millis.items() if name != "triggerExecution"},
        records=int(report["numInputRows"]),
    )


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
