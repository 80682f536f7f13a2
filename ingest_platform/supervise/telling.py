"""Which verdicts are told: changes, and each one now and then; Dagster's event log never forgets.

Worse is told at once, better only when it has lasted, so that a figure that swings around its limit
is no stream of events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from ingest_platform.model.times import parse_time
from ingest_platform.supervise.balance import Flaw
from ingest_platform.supervise.checks import CheckResult, Level

SETTLED = timedelta(minutes=10)
AGAIN = timedelta(hours=6)


@dataclass(frozen=True)
class Told:
    """The last verdict that was told; `better_since` is set while a better one has to last."""

    level: int
    at: str
    better_since: str = ""


@dataclass(frozen=True)
class Checked:
    """What is remembered of a table's checks.

    Attributes:
        told: By check.
        at: When the table itself was looked at last; ISO 8601.
        version: Of the table then.
        flaw: In the ledgers, if one was found.
    """

    told: Mapping[str, Told] = field(default_factory=dict[str, Told])
    at: str = ""
    version: int = -1
    flaw: Flaw | None = None

    def look_due(self, every: timedelta, now: datetime) -> bool:
        """Whether the table is to be looked at; a clock set back is no reason to wait for it."""
        last = parse_time(self.at)
        return last is None or not timedelta(0) <= now - last < every

    def looked(self, now: datetime, version: int, flaw: Flaw | None) -> Checked:
        """After a look at the table."""
        return replace(self, at=now.isoformat(), version=version, flaw=flaw)

    def tell(
        self, results: Sequence[CheckResult], now: datetime
    ) -> tuple[list[CheckResult], Checked]:
        """Those of the results that are to be told, and what is remembered then."""
        told, out = dict(self.told), list[CheckResult]()
        for result in results:
            due, told[result.name] = _next(told.get(result.name), result.level, now)
            if due:
                out.append(result)
        return out, replace(self, told=told)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Checked:
        """From the stored form.

        Raises:
            KeyError, TypeError: It is of another version.
        """
        flaw = raw.get("flaw")
        told = {name: Told(**one) for name, one in raw.get("told", {}).items()}
        return cls(told, raw.get("at", ""), raw.get("version", -1), Flaw(**flaw) if flaw else None)


def _next(last: Told | None, level: Level, now: datetime) -> tuple[bool, Told]:
    """Whether to tell, and what is remembered."""
    fresh = Told(int(level), now.isoformat())
    if last is None or level > last.level:
        return True, fresh
    if level == last.level:
        return (
            (True, fresh) if _over(last.at, AGAIN, now) else (False, replace(last, better_since=""))
        )
    if not last.better_since:
        return False, replace(last, better_since=now.isoformat())
    return (True, fresh) if _over(last.better_since, SETTLED, now) else (False, last)


def _over(since: str, span: timedelta, now: datetime) -> bool:
    time = parse_time(since)
    return time is None or now - time >= span
