"""What a stream has in its table, by the accounts in the table's log; a RESTORE may undo some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ingest_platform.adapters.table_log import TableLog
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.commit import Commit
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import Positions

_WINDOWS = (50, 1000)  # commits looked at first: the newest data commit is rarely far away


def newest_account(table: TableLog, stream: str) -> Ledger | RepairRecord | None:
    """The account of the stream's newest batch or repair, however much maintenance came after."""
    version = table.version()
    if version is None:
        return None
    for limit in (*_WINDOWS, version + 1):
        commits = table.commits(after=max(-1, version - limit), limit=limit)
        account = next(_newest_first(commits, stream), None)
        if account:
            return account
    return None


def held_positions(table: TableLog, stream: str) -> Positions:
    """Where each partition goes on after what the table holds."""
    version = table.version()
    ends: dict[str, dict[int, int]] = {}
    if version is not None:
        commits = table.commits(after=-1, limit=version + 1)
        for account in _newest_first(commits, stream):
            for topic, partition, end in _ends(account):
                ends.setdefault(topic, {}).setdefault(partition, end)
            if isinstance(account, RepairRecord):
                break  # it names all partitions, and may have begun the topic anew
    return Positions(ends)


def _ends(account: Ledger | RepairRecord) -> Iterator[tuple[str, int, int]]:
    if isinstance(account, RepairRecord):
        yield from account.start
    else:
        yield from ((r.topic, r.partition, r.until) for r in account.offsets)


def _newest_first(commits: Iterable[Commit], stream: str) -> Iterator[Ledger | RepairRecord]:
    """The stream's accounts that still count.

    RESTORE takes out what came after its version, and so does a repair, of the stream's batches.
    """
    newest: int | None = None
    for commit in sorted(commits, key=lambda c: c.version, reverse=True):
        if newest is not None and commit.version > newest:
            continue
        if commit.repair and commit.repair.stream == stream:
            newest = commit.repair.kept_version
            yield commit.repair
        elif commit.restored_to is not None:
            newest = commit.restored_to
        elif commit.ledger and commit.ledger.stream == stream:
            yield commit.ledger
