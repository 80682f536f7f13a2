"""When which records became readable: from a Delta log, or from the floor's progress file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ingest_platform.model.ledger import Ledger
from ingest_platform_tests.benchmarks.clicks import PARTITIONS


@dataclass(frozen=True)
class DataCommit:
    """One commit, or file, that added rows.

    Attributes:
        at: Seconds since 1970 at which its log entry was written.
        records: Kafka records that it accounts for: rows, and bad ones put aside.
        rows: Rows in the table.
        files: Data files.
        bytes: In these files.
    """

    at: float
    records: int
    rows: int
    files: int
    bytes: int


class Timeline(Protocol):
    """Grows while a contender runs."""

    def commits(self) -> Sequence[DataCommit]:
        """All so far, oldest first."""
        ...


class DeltaTimeline:
    """Commits of a local Delta table; each look reads what is new."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._next = 0
        self._commits: list[DataCommit] = []

    def commits(self) -> Sequence[DataCommit]:
        """All so far, oldest first."""
        while (path := self._log / f"{self._next:020d}.json").exists():
            commit = _read(path)
            if commit.records:
                self._commits.append(commit)
            self._next += 1
        return self._commits


class FileTimeline:
    """Files of the floor, from the lines that it writes."""

    def __init__(self, progress: Path) -> None:
        self._progress = progress
        self._offset = 0
        self._commits: list[DataCommit] = []

    def commits(self) -> Sequence[DataCommit]:
        """All so far, oldest first."""
        if not self._progress.exists():
            return self._commits
        with self._progress.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # half written: the next look reads it
                self._offset += len(line)
                self._commits.append(DataCommit(files=1, **json.loads(line)))
        return self._commits


def reached(commits: Sequence[DataCommit], records: int) -> int | None:
    """Index of the commit with which this many records were readable; None if not yet.

    Spark rounds each Kafka partition's share of a batch down, so after k batches up to 25 k records
    are missing to the round number. They are let pass: waiting for one more batch would not be.
    """
    total = 0
    for index, commit in enumerate(commits):
        total += commit.records
        if total >= records - PARTITIONS * (index + 1):
            return index
    return None


def rate(commits: Sequence[DataCommit], start: int, end: int) -> float:
    """Records per second after commit `start` up to and with commit `end`."""
    seconds = commits[end].at - commits[start].at
    return sum(c.records for c in commits[start + 1 : end + 1]) / seconds if seconds > 0 else 0.0


def _read(path: Path) -> DataCommit:
    actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    added = [action["add"] for action in actions if "add" in action]
    rows = sum(json.loads(add["stats"])["numRecords"] for add in added)
    info = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    ledger = Ledger.from_user_metadata(info.get("userMetadata"))
    return DataCommit(
        at=path.stat().st_mtime,
        records=ledger.read if ledger else rows,
        rows=rows,
        files=len(added),
        bytes=sum(add["size"] for add in added),
    )
