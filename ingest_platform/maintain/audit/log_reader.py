"""From a log folder to commits: lists it once, then reads only each commit's `commitInfo`.

Format: https://github.com/delta-io/delta/blob/master/PROTOCOL.md (Delta Log Entries, Checkpoints,
Commit Provenance Information).
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ingest_platform.maintain.audit.commits import Commit, LogExtent
from ingest_platform.maintain.audit.log_folder import Entry, LogFolder
from ingest_platform.model.account import RepairRecord, ReplayRecord
from ingest_platform.model.ledger import Ledger

HEAD_BYTES = 16_384  # holds the commitInfo of a batch of some 150 partitions
_WINDOW = 2_000  # commits under way at once: bounds memory when parsing is slower than reading
_PROBED = 1_000

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*(parquet|json)")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
_DATA_CHANGE = re.compile(rb'"dataChange"\s*:\s*true')
_COMMIT_INFO = re.compile(rb'\s*\{\s*"commitInfo"\s*:')


class LogChangedError(Exception):
    """A listed entry was gone when it was to be read: clean-up ran meanwhile, so list again."""


@dataclass(frozen=True)
class Listing:
    """What a listing of the log shows: the commits by version, and the other files' versions."""

    commits: tuple[tuple[int, Entry], ...]
    checkpoints: tuple[int, ...]
    checksums: tuple[int, ...]

    def extent(self, *, cleanup_possible: bool | None = None) -> LogExtent:
        """The facts that the audit takes beside the commits."""
        traces = (*self.checkpoints, *self.checksums)
        return LogExtent(self.checkpoints, max(traces, default=None), cleanup_possible)


def list_log(folder: LogFolder) -> Listing:
    """List a log; entries that a listing under way may have passed over are asked for by name."""
    commits: dict[int, Entry] = {}
    checkpoints: set[int] = set()
    checksums: set[int] = set()
    for entry in folder.entries():
        if match := _COMMIT.fullmatch(entry.name):
            commits[int(match[1])] = entry
        elif match := _CHECKPOINT.fullmatch(entry.name):
            checkpoints.add(int(match[1]))
        elif match := _CHECKSUM.fullmatch(entry.name):
            checksums.add(int(match[1]))
    traces = checkpoints | checksums
    for version in _absent(sorted(commits), max(traces, default=-1)):
        name = f"{version:020}.json"
        found = folder.read(name)
        if found is not None:
            commits[version] = Entry(name, len(found), 0)
    return Listing(tuple(sorted(commits.items())), tuple(sorted(checkpoints)), tuple(checksums))


def _absent(versions: Sequence[int], newest_trace: int) -> list[int]:
    """Versions that should be in a log with these ones; a bounded number."""
    if not versions:
        return []
    holes = [*pairwise(versions), (versions[-1], newest_trace + 1)]
    missing: list[int] = []
    for before, after in holes:
        missing += range(before + 1, min(after, before + 1 + _PROBED - len(missing)))
    return missing


def read_commits(folder: LogFolder, listing: Listing) -> Iterator[Commit]:
    """The listed commits, by rising version.

    Raises:
        LogChangedError: One is gone meanwhile.
    """

    def read(item: tuple[int, Entry]) -> Commit:
        return read_commit(folder, *item)

    if folder.parallel == 1:
        yield from map(read, listing.commits)
        return
    with ThreadPoolExecutor(folder.parallel) as pool:
        under_way: deque[Future[Commit]] = deque()
        try:
            for item in listing.commits:
                under_way.append(pool.submit(read, item))
                if len(under_way) == _WINDOW:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)  # of a caller that has seen enough


def read_commit(folder: LogFolder, version: int, entry: Entry) -> Commit:
    """Read one commit: its head, and the rest only where the head does not tell enough."""
    head = folder.read(entry.name, HEAD_BYTES)
    if head is None:
        raise LogChangedError(entry.name)

    def whole() -> bytes:
        if len(head) < HEAD_BYTES:
            return head
        content = folder.read(entry.name)
        if content is None:
            raise LogChangedError(entry.name)
        return content

    return parse_commit(version, head, whole, entry.modified)


def parse_commit(
    version: int, head: bytes, whole: Callable[[], bytes], modified: int = 0
) -> Commit:
    """Make a `Commit` of a commit file's bytes.

    Args:
        version: From the file's name.
        head: The file's first bytes; Spark writes `commitInfo` first.
        whole: Gives the whole file; called for other writers' commits only.
        modified: The file's time (epoch ms), for a commit that does not say its own.
    """
    try:
        info = _commit_info(head, complete=False)
        if info is None:
            info = _commit_info(whole(), complete=True) or {}
    except (ValueError, TypeError, RecursionError) as error:
        return Commit(version, modified, unreadable=f"not a Delta commit: {error}")
    timestamp = info.get("inCommitTimestamp") or info.get("timestamp") or modified
    operation = str(info.get("operation") or "")
    metadata = info.get("userMetadata")
    text = metadata if isinstance(metadata, str) else None
    try:
        ledger = Ledger.from_user_metadata(text)
        repair = RepairRecord.from_user_metadata(text)
        replay = ReplayRecord.from_user_metadata(text)
    except (ValueError, AttributeError, RecursionError) as error:
        return Commit(version, timestamp, operation, unreadable=f"unreadable ledger: {error}")
    if ledger or replay:
        return Commit(version, timestamp, operation, ledger, rows=_rows(info), replay=replay)
    target = _restored(info) if operation == "RESTORE" else None
    if repair or target is not None:
        return Commit(version, timestamp, operation, restored_to=target, repair=repair)
    content = whole()
    if not content.strip():
        return Commit(version, timestamp, operation, unreadable="the commit file is empty")
    changes = _DATA_CHANGE.search(content) is not None
    return Commit(version, timestamp, operation, changes_data=changes)


def _commit_info(content: bytes, *, complete: bool) -> dict[str, Any] | None:
    """The `commitInfo` action; None when it is not in these bytes, or torn at their end."""
    lines = content.split(b"\n")
    for line in lines if complete else lines[:-1]:
        if _COMMIT_INFO.match(line):
            info = json.loads(line)["commitInfo"]
            if not isinstance(info, dict):
                raise TypeError("commitInfo is not an object")
            return info
    return None


def _rows(info: Mapping[str, Any]) -> int | None:
    return _whole_number(info.get("operationMetrics"), "numOutputRows")


def _restored(info: Mapping[str, Any]) -> int | None:
    """The version that a RESTORE names; None when it names a time only."""
    return _whole_number(info.get("operationParameters"), "version")


def _whole_number(section: Any, name: str) -> int | None:
    """A number of a commit's metrics or parameters, which Spark writes as strings."""
    text = str(section.get(name)) if isinstance(section, dict) else ""
    return int(text) if text.isdecimal() else None
