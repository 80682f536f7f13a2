"""From what is wrong now to what is raised and what is resolved: neither for a moment's trouble."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ingest_platform.model.alert import Alert, AlertKind
from ingest_platform.model.contact import Watch
from ingest_platform.model.times import parse_time
from ingest_platform.supervise.alerting.facts import Condition, Findings

# What Dagster's own records tell, and so can be judged while the streams' storage is away.
_BY_DAGSTER = (AlertKind.LAG_WARNING, AlertKind.LAG_FAILURE, AlertKind.CHECK_FAILED)
# What this watcher does not judge: each ends in another way.
_NOT_JUDGED = (AlertKind.RUN_FAILED, AlertKind.TEST)


@dataclass(frozen=True)
class Watched:
    """What the watcher remembers from one look to the next; losing it costs some patience only.

    Attributes:
        since: When a condition was first seen, by key; ISO 8601.
        well: Since when it is gone.
        contacts: The watches of the supervisors' contacts, by stream.
        open: Alerts that were open when an outbox could last be read, by its root.
        runs_until: Runs that ended before were looked at; seconds since the epoch.
    """

    since: Mapping[str, str] = field(default_factory=dict[str, str])
    well: Mapping[str, str] = field(default_factory=dict[str, str])
    contacts: Mapping[str, Watch] = field(default_factory=dict[str, Watch])
    open: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    runs_until: float = 0.0

    def to_cursor(self) -> str:
        """The text that Dagster keeps, with every tick: short, as there may be 200 streams."""
        watches = {name: astuple(watch) for name, watch in self.contacts.items()}
        return json.dumps({**asdict(self), "contacts": watches}, separators=(",", ":"))

    @classmethod
    def from_cursor(cls, text: str | None) -> Watched:
        """Read the text; a fresh memory for one that is missing or of another version."""
        try:
            raw: dict[str, Any] = json.loads(text or "{}")
            contacts = {name: Watch(*watch) for name, watch in raw["contacts"].items()}
            until = float(raw["runs_until"])
            return cls(raw["since"], raw["well"], contacts, raw["open"], until)
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()


@dataclass(frozen=True)
class Change:
    """What is to be written into the outbox."""

    raised: tuple[Alert, ...]
    resolved: Mapping[str, str]  # key -> why
    since: Mapping[str, str]
    well: Mapping[str, str]


def settle(
    found: Findings,
    open_keys: Collection[str],
    streams: Collection[str],
    watched: Watched,
    *,
    resolve_after: timedelta,
    now: datetime,
) -> Change:
    """Decide.

    Args:
        found: What this look found.
        open_keys: Alerts that are open in the outbox.
        streams: Streams of this deployment; alerts of others are not ours to resolve.
        watched: From the last look.
        resolve_after: So long all must have been well.
        now: The watcher's time.
    """
    since, well = dict(watched.since), dict(watched.well)
    raised = [c.alert for key, c in found.present.items() if _lasts(key, c, since, well, now)]
    resolved: dict[str, str] = {}
    for key in {*open_keys, *since} - set(found.present):
        if key in found.well_runs:
            resolved[key] = "a later run of the job succeeded"
        elif _judged(key, found, streams) and _over(key, well, resolve_after, now):
            resolved[key] = f"all was well for {round(resolve_after.total_seconds())} s"
    for key in resolved:
        since.pop(key, None)
        well.pop(key, None)
    still = {*open_keys, *since} - set(resolved)
    return Change(
        raised=tuple(alert for alert in raised if alert.key not in open_keys),
        resolved={key: why for key, why in resolved.items() if key in open_keys},
        since=since,
        well={key: at for key, at in well.items() if key in still},
    )


def _lasts(
    key: str, condition: Condition, since: dict[str, str], well: dict[str, str], now: datetime
) -> bool:
    """Whether the condition has been there for long enough; notes when it came.

    One that comes and goes, as with a driver that starts and fails in turn, counts from its first
    time: it is forgotten only once it has been away for `resolve_after`.
    """
    well.pop(key, None)
    first = parse_time(since.setdefault(key, now.isoformat()))
    return first is None or now - first >= condition.patience


def _over(key: str, well: dict[str, str], after: timedelta, now: datetime) -> bool:
    """Whether it has been away for long enough; notes since when it is."""
    gone = parse_time(well.setdefault(key, now.isoformat()))
    return gone is None or now - gone >= after


def _judged(key: str, found: Findings, streams: Collection[str]) -> bool:
    stream, _, rest = key.partition("/")
    kind = rest.partition(".")[0]
    if key in found.unjudged or kind in _NOT_JUDGED:
        return False
    if stream in found.unseen:
        return kind in _BY_DAGSTER
    return stream in streams or stream.startswith("_")
