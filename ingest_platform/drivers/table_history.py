"""What a stream has in its table, by the ledgers of the table's log; a RESTORE may undo some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ingest_platform.adapters.table_log import TableLog
from ingest_platform.model.commit import Commit
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import Positions

_WINDOWS = (50, 1000)  # commits looked at first: the newest data commit is rarely far away


def newest_ledger(table: TableLog, stream: str) -> Ledger | None:
    """The ledger of the stream's newest data commit, however much maintenance came after it."""
    version = table.version()
    if version is None:
        return None
    for limit in (*_WINDOWS, version + 1):
        commits = table.commits(after=max(-1, version - limit), limit=limit)
        ledger = next(_newest_first(commits, stream), None)
        if ledger:
            return ledger
    return None


def held_positions(table: TableLog, stream: str) -> Positions:
    """Where each partition ends in the table."""
    version = table.version()
    ends: dict[str, dict[int, int]] = {}
    if version is not None:
        for ledger in _newest_first(table.commits(after=-1, limit=version + 1), stream):
            for r in ledger.offsets:
                ends.setdefault(r.topic, {}).setdefault(r.partition, r.until)
    return Positions(ends)


def _newest_first(commits: Iterable[Commit], stream: str) -> Iterator[Ledger]:
    """The stream's ledgers that still count: RESTORE takes out what came after its version."""
    newest: int | None = None
    for commit in sorted(commits, key=lambda c: c.version, reverse=True):
        if newest is not None and commit.version > newest:
            continue
        if commit.restored_to is not None:
            newest = commit.restored_to
        elif commit.ledger and commit.ledger.stream == stream:
            yield commit.ledger
