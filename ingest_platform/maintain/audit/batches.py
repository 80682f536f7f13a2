"""The batches of a log, in columns, and which of them still count after RESTOREs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingest_platform.maintain.audit.report import Finding, Kind, Level
from ingest_platform.model.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Batch:
    """One ledger, without its offsets, which `Coverage` keeps; some 200 bytes."""

    version: int
    stream: str
    session: str
    number: int
    read: int
    written: int
    quarantined: int
    skipped: int
    gaps: int
    max_event_time: str | None
    timestamp: int = 0

    @classmethod
    def of(cls, version: int, ledger: Ledger, timestamp: int = 0) -> Batch:
        """The batch that a commit's ledger accounts for."""
        return cls(
            version,
            ledger.stream,
            ledger.session,
            ledger.batch,
            ledger.read,
            ledger.written,
            ledger.quarantined,
            ledger.skipped,
            ledger.gaps,
            ledger.max_event_time,
            timestamp,
        )


@dataclass(frozen=True)
class Restore:
    """At `version`, the table (or a stream's part of it) went back to what it was at `target`."""

    version: int
    target: int


class Lineage:
    """The versions whose commits make up the table's content at one version.

    A RESTORE does not rewrite the log: it leaves the commits that it undid where they are. They
    must not count, or what is ingested again after them would look doubled.
    """

    def __init__(self, restores: Sequence[Restore], last: int) -> None:
        self.intervals = list(_lineage(restores, last))
        begins = {first for first, _ in self.intervals}
        self.applied = [r.version for r in restores if r.version + 1 in begins]

    def undone(self, version: int) -> bool:
        """Whether the table went back from that version, so that it is no state to go back to."""
        return version not in self and version not in self.applied

    def __contains__(self, version: int) -> bool:
        return any(first <= version <= last for first, last in self.intervals)


def _lineage(restores: Sequence[Restore], version: int) -> Iterator[tuple[int, int]]:
    """Closed intervals of versions, newest first: back from RESTORE to RESTORE."""
    for restore in reversed(restores):
        if restore.version <= version:
            yield restore.version + 1, version
            version = restore.target
    yield 0, version


def order_findings(batches: Iterable[Batch]) -> Iterator[Finding]:
    """Changes of session, sessions that come back, and batch numbers that do not rise.

    A number may be left out (a batch without records makes no commit), but it may never repeat:
    Delta would skip the second one silently.
    """
    current: dict[str, Batch] = {}
    newest: dict[tuple[str, str], int] = {}
    for batch in batches:
        before = current.get(batch.stream)
        current[batch.stream] = batch
        highest = newest.get((batch.stream, batch.session))
        newest[batch.stream, batch.session] = max(batch.number, highest or 0)
        if before and before.session != batch.session:
            yield _session_finding(before, batch, returns=highest is not None)
        if highest is not None and batch.number <= highest:
            what = (
                f"session {batch.session} commits batch {batch.number} at version "
                f"{batch.version}, after batch {highest}"
            )
            yield Finding(Kind.BATCH_ORDER, what, versions=(batch.version,))


def _session_finding(before: Batch, batch: Batch, *, returns: bool) -> Finding:
    versions = (before.version, batch.version)
    if returns:
        what = (
            f"session {batch.session} goes on at version {batch.version}, after session "
            f"{before.session} took over: two drivers wrote at once"
        )
        return Finding(Kind.SESSION_ORDER, what, versions=versions)
    what = (
        f"session {batch.session} takes over from {before.session} at version {batch.version}, "
        f"with batch {batch.number}"
    )
    return Finding(Kind.SESSION_CHANGE, what, Level.NOTE, versions=versions)
