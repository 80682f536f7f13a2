"""The ledgers of the last commits, held against each other: a small audit, cheap to repeat.

`ingest-platform audit` proves the whole log, the data and the topic; this sees within minutes what
goes wrong now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingest_platform.model.commit import Commit
from ingest_platform.model.ledger import Ledger
from ingest_platform.supervise.checks import BALANCE, CheckResult, Level


@dataclass(frozen=True)
class Flaw:
    """The first thing found wrong; it counts until a repair has begun another session."""

    session: str = ""
    what: str = ""


def ledger_balance(
    stream: str, commits: Sequence[Commit], known: Flaw | None = None
) -> tuple[CheckResult | None, Flaw | None]:
    """The verdict, None without any ledger of the stream; and the flaw, if there is one.

    Args:
        stream: Whose ledgers count.
        commits: Oldest first.
        known: What was found before: nothing that is wrong in a log is mended by more commits.
    """
    mine = _newest_session(stream, commits)
    if known and (not mine or mine[-1][1].session == known.session):
        return _result(stream, mine, known), known
    if not mine:
        return None, None
    what = next(_flaws(mine), None)
    flaw = Flaw(mine[-1][1].session, what) if what else None
    return _result(stream, mine, flaw), flaw


_Mine = list[tuple[Commit, Ledger]]


def _newest_session(stream: str, commits: Sequence[Commit]) -> _Mine:
    """Since the last RESTORE, which takes commits back: what follows it begins anew."""
    undone = max((i for i, c in enumerate(commits) if c.restored_to is not None), default=-1)
    mine = [(c, c.ledger) for c in commits[undone + 1 :] if c.ledger and c.ledger.stream == stream]
    return [(c, ledger) for c, ledger in mine if ledger.session == mine[-1][1].session]


def _flaws(mine: _Mine) -> Iterator[str]:
    ends: dict[tuple[str, int], int] = {}
    for commit, ledger in mine:
        where = f"version {commit.version}, batch {ledger.batch}"
        wrong = ledger.imbalance()
        if wrong:
            yield f"{where}: {wrong}"
        for r in ledger.offsets:
            expected = ends.get((r.topic, r.partition), r.start)
            if r.start != expected:
                kind = "missing" if r.start > expected else "there twice"
                low, high = sorted((r.start, expected))
                yield f"{where}: {r.topic}-{r.partition} offsets {low} to {high - 1} are {kind}"
            ends[r.topic, r.partition] = r.until


def _result(stream: str, mine: _Mine, flaw: Flaw | None) -> CheckResult:
    ledgers = [ledger for _, ledger in mine]
    reason = f"{len(ledgers)} ledgers add up, without gap or overlap"
    if flaw:
        reason = f"{flaw.what}; prove it: ingest-platform audit {stream} --data --topic"
    figures = {
        "commits": len(ledgers),
        "read": sum(ledger.read for ledger in ledgers),
        "written": sum(ledger.written for ledger in ledgers),
        "quarantined": sum(ledger.quarantined for ledger in ledgers),
        "skipped": sum(ledger.skipped for ledger in ledgers),
    }
    return CheckResult(BALANCE, Level.ERROR if flaw else Level.PASSED, reason, figures)
