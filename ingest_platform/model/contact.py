"""The supervisor's contact: that it looked at a stream, and what it made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from ingest_platform.model.states import StreamState
from ingest_platform.model.times import parse_time

# A watcher that did not look for so long cannot say that nothing changed meanwhile.
_BLINK = timedelta(minutes=3)
_EVERY = timedelta(seconds=55)  # a little less than a minute, since ticks have their own rhythm


@dataclass(frozen=True)
class Contact:
    """What the supervisor last made of a stream. `at` is ISO 8601 UTC.

    Attributes:
        state: As UI and command line show it.
        reason: The decision's own.
        alert: A person should know, though it may heal by itself.
        remedy: What a person has to do, when nothing will happen without one; else empty.
        error: Kind of the error that ended the last driver or launch; empty if none did.
        message: What that error said.
    """

    stream: str
    at: str
    state: StreamState
    reason: str
    alert: bool = False
    remedy: str = ""
    error: str = ""
    message: str = ""

    @property
    def news(self) -> tuple[str, bool, bool, str]:
        """What, when it changes, is worth writing at once."""
        return self.state, self.alert, bool(self.remedy), self.error

    def worth_writing(self, last: Contact | None) -> bool:
        """Whether `last` says something else, or is a minute old: a write costs money on S3."""
        if last is None or last.news != self.news:
            return True
        before, now = parse_time(last.at), parse_time(self.at)
        # A clock that was set back must not keep the supervisor silent.
        return before is None or now is None or not timedelta(0) <= now - before < _EVERY

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes | None) -> Contact | None:
        """Read the stored form; None for one that is missing or torn."""
        try:
            raw = json.loads(text or "null")
            known: dict[str, Any] = {f.name: raw[f.name] for f in fields(cls) if f.name in raw}
            known["state"] = StreamState(raw["state"])
            return cls(**known)
        except (ValueError, TypeError, KeyError):
            return None


@dataclass(frozen=True)
class Watch:
    """How long a document has not changed, by the watcher's clock alone.

    Comparing the document's own time with the watcher's would take a skewed clock for silence, and
    a watcher that was itself away must not count that time.
    """

    mark: str = ""
    seen_at: str = ""
    looked_at: str = ""

    def look(self, mark: str, now: datetime) -> Watch:
        """Take another look at a document that `mark` identifies; empty for none."""
        looked, text = parse_time(self.looked_at), now.isoformat(timespec="seconds")
        blinked = looked is None or not timedelta(0) <= now - looked <= _BLINK
        if mark != self.mark or blinked:
            return Watch(mark, text, text)
        return replace(self, looked_at=text)

    def quiet(self, now: datetime) -> timedelta:
        """For how long; zero without a document, since then nobody ever spoke."""
        seen = parse_time(self.seen_at) if self.mark else None
        return max(timedelta(0), now - seen) if seen else timedelta(0)
