"""Whether a table has files to delete, and how to find them: from what its log said, without I/O.

A file that a commit removes may be deleted once the retention has passed, which is days later. So
each look remembers the removals among the commits that are new since the last one; reading days of
the log again every hour would be thousands of requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from ingest_platform.model.commit import Commit
from ingest_platform.spec import VacuumSpec

_BUCKET_MS = 600_000  # removals are told apart by ten minutes: 1,008 entries in seven days


class Way(StrEnum):
    """How deletable files are found."""

    LITE = "LITE"
    """From the log's removals since the last vacuum. Does not see what killed writers left."""
    FULL = "FULL"
    """By listing the table's storage."""


@dataclass(frozen=True)
class Removal:
    """Files that commits removed within ten minutes.

    Attributes:
        until_ms: End of those minutes, epoch milliseconds.
        files: How many.
        version: The newest of the commits.
    """

    until_ms: int
    files: int
    version: int


@dataclass(frozen=True)
class VacuumMemory:
    """What is known of a table from earlier looks and runs; kept beside its status document.

    Losing it costs one listing of the table's storage, and nothing else.

    Attributes:
        version: Commits up to here were looked at.
        removals: Not yet vacuumed, oldest first.
        full_ms: When storage was last listed, epoch milliseconds; 0 for never.
    """

    version: int = -1
    removals: tuple[Removal, ...] = ()
    full_ms: int = 0

    def to_json(self) -> bytes:
        """For `from_json`."""
        removals = [[r.until_ms, r.files, r.version] for r in self.removals]
        return json.dumps(
            {"v": 1, "version": self.version, "removals": removals, "full_ms": self.full_ms}
        ).encode()

    @classmethod
    def from_json(cls, data: bytes | None) -> VacuumMemory:
        """Read it; what is missing or cannot be read is an empty memory."""
        try:
            body: dict[str, Any] = json.loads(data or b"")
            removals = tuple(Removal(int(t), int(n), int(v)) for t, n, v in body["removals"])
            return cls(int(body["version"]), removals, int(body["full_ms"]))
        except (ValueError, TypeError, KeyError):
            return cls()

    def with_commits(self, commits: Iterable[Commit], version: int) -> VacuumMemory:
        """After a look at the commits up to `version`.

        Where the log no longer has all of them, or too many came at once, the oldest one that is
        there stands for those before it: something may have been removed.
        """
        if version < self.version:
            return VacuumMemory().with_commits(commits, version)  # the table was made anew
        found = list(self.removals)
        newest = self.version
        for commit in sorted(commits, key=lambda c: c.version):
            if commit.version <= self.version:
                continue
            unseen = commit.version > newest + 1
            files = removed_files(commit) + unseen
            newest = commit.version
            if files:
                until = (commit.timestamp_ms // _BUCKET_MS + 1) * _BUCKET_MS
                if found and found[-1].until_ms >= until:
                    files += found[-1].files
                    until = found.pop().until_ms
                found.append(Removal(until, files, commit.version))
        return replace(self, version=version, removals=tuple(found))

    def vacuumed(self, way: Way, started: datetime, keep: timedelta) -> VacuumMemory:
        """After a vacuum that was begun at `started` and kept files for `keep`."""
        left = tuple(r for r in self.removals if r.until_ms > _ms(started - keep))
        full = _ms(started) if way is Way.FULL else self.full_ms
        return replace(self, removals=left, full_ms=full)

    def expired(self, now: datetime, keep: timedelta) -> tuple[Removal, ...]:
        """Removals whose retention has passed."""
        return tuple(r for r in self.removals if r.until_ms <= _ms(now - keep))


@dataclass(frozen=True)
class VacuumPlan:
    """What a run is to do; `way` is None if that is nothing."""

    way: Way | None
    reason: str


def plan_vacuum(
    memory: VacuumMemory,
    rules: VacuumSpec,
    *,
    keep: timedelta,
    created: datetime | None,
    now: datetime,
) -> VacuumPlan:
    """Decide.

    Args:
        memory: After a look at the newest commits.
        rules: The spec's.
        keep: The retention.
        created: When the table was made, if its log says so.
        now: With time zone.
    """
    if created is not None and now - created < keep:
        return VacuumPlan(None, "the table is younger than its retention")
    if not memory.full_ms:
        return VacuumPlan(Way.FULL, "storage was never listed")
    since = now - datetime.fromtimestamp(memory.full_ms / 1000, UTC)
    if since >= rules.full_every:
        hours = since.total_seconds() / 3600
        return VacuumPlan(Way.FULL, f"storage was last listed {hours:.0f} h ago")
    expired = sum(removal.files for removal in memory.expired(now, keep))
    if expired:
        return VacuumPlan(Way.LITE, f"{expired} removed files have expired")
    if not memory.removals:
        return VacuumPlan(None, "no commit has removed files")
    first = memory.removals[0]
    at = datetime.fromtimestamp(first.until_ms / 1000, UTC) + keep
    return VacuumPlan(
        None, f"the next {first.files} removed files expire at {at.isoformat(timespec='minutes')}"
    )


def removed_files(commit: Commit) -> int:
    """Data files that a commit took out of the table, by its metrics.

    Writers name it differently: numRemovedFiles, numTargetFilesRemoved, num_removed_files.
    """
    counts = [
        value
        for name, value in commit.metrics.items()
        if "removed" in name.lower() and "file" in name.lower()
    ]
    return max(counts, default=0)


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)
