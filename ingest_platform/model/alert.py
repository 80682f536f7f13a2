"""An alert: what a person must know, since when, in numbers, why, and which command to run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

DEPLOYMENT = "_deployment"  # in the place of a stream's name, which never starts with `_`
_KEPT_CHARACTERS = 48


class Severity(StrEnum):
    """How urgent it is."""

    WARNING = "warning"  # look at it in working hours
    ERROR = "error"  # something does not work, and the platform goes on trying
    CRITICAL = "critical"  # data is late, or nothing will happen without a person

    @property
    def rank(self) -> int:
        """For comparing."""
        return list(Severity).index(self)


class AlertKind(StrEnum):
    """What it is about; docs/operations.md says for each what to do."""

    NEEDS_PERSON = "needs_person"  # the supervisor gave up
    FAILING = "failing"  # the driver ends or hangs again and again
    LAG_WARNING = "lag_warning"  # freshness: the warning limit has passed
    LAG_FAILURE = "lag_failure"  # freshness: the failure limit has passed
    CHECK_FAILED = "check_failed"
    RUN_FAILED = "run_failed"
    KAFKA_UNREACHABLE = "kafka_unreachable"
    STORAGE_UNREACHABLE = "storage_unreachable"
    SUPERVISOR_SILENT = "supervisor_silent"
    TEST = "test"


@dataclass(frozen=True)
class Alert:
    """One alert. Two with the same `key` are the same alert, told again.

    Attributes:
        kind: What it is about.
        severity: How urgent it is.
        stream: The stream concerned; empty for the whole deployment.
        subject: Tells alerts of one kind and stream apart: a check, a job, a cluster.
        what: One sentence.
        since: ISO 8601; when it began, as far as that is known.
        numbers: Figures by their names, units in the names.
        cause: The likely cause; empty when nothing is known.
        command: What to run first.
    """

    kind: AlertKind
    severity: Severity
    stream: str
    what: str
    since: str
    command: str
    subject: str = ""
    numbers: Mapping[str, str | int | float] = field(default_factory=dict[str, str | int | float])
    cause: str = ""

    @property
    def key(self) -> str:
        """`stream/kind` or `stream/kind.subject`: stable for as long as the trouble lasts."""
        subject = f".{_slug(self.subject)}" if self.subject else ""
        return f"{self.stream or DEPLOYMENT}/{self.kind}{subject}"

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Alert:
        """Build from JSON, ignoring fields of newer versions.

        Raises:
            ValueError, TypeError: It is no alert.
        """
        known = {f.name for f in fields(cls)}
        kept: dict[str, Any] = {name: value for name, value in raw.items() if name in known}
        kept["kind"] = AlertKind(raw.get("kind", ""))
        kept["severity"] = Severity(raw.get("severity", ""))
        return cls(**kept)


@dataclass(frozen=True)
class Transition:
    """An alert was raised, or resolved: what a channel is told.

    Attributes:
        alert: As it was when it was raised.
        number: Counts the transitions of the alert's key from 1: odd ones raise, even ones resolve.
        at: ISO 8601.
        why: How a resolved one ended.
    """

    alert: Alert
    number: int
    at: str
    why: str = ""

    @property
    def resolves(self) -> bool:
        """Whether the trouble is over."""
        return self.number % 2 == 0

    @property
    def id(self) -> str:
        """Stable over every repetition of its delivery, so that a receiver can drop a double."""
        return f"{self.alert.key}/{self.number}/{self.at}"

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes | None) -> Transition | None:
        """Read the stored form; None for one that is gone or foreign."""
        try:
            raw = json.loads(text or "null")
            return cls(Alert.from_dict(raw["alert"]), raw["number"], raw["at"], raw.get("why", ""))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


def _slug(text: str) -> str:
    """The text as part of a name of files and objects; different texts stay different."""
    kept = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:_KEPT_CHARACTERS]
    if kept == text:
        return kept
    return f"{kept}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
