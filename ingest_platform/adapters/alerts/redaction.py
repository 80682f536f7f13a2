"""No secret leaves in an alert: an error's text may quote what it was given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ingest_platform.model.alert import Alert

_SECRET_NAME = re.compile(
    r"SECRET|PASSWORD|PASSWD|TOKEN|CREDENTIAL|JAAS|PRIVATE|ROUTING_KEY|WEBHOOK|ACCESS_KEY",
    re.IGNORECASE,
)
_SHORTEST = 6  # a shorter value would match by chance
_LONGEST = 1000  # characters of one text
_LOGIN = re.compile(r"(://)[^/\s:@]+:[^/\s@]+@")


@dataclass(frozen=True)
class Redaction:
    """The values that must not leave, longest first, so that none is left in part."""

    values: tuple[str, ...]

    @classmethod
    def of(cls, environ: Mapping[str, str], named: Iterable[str] = ()) -> Redaction:
        """From the variables whose names say that they are secret, and those that are `named`."""
        more = set(named)
        found = {
            value
            for name, value in environ.items()
            if len(value) >= _SHORTEST and (name in more or _SECRET_NAME.search(name))
        }
        return cls(tuple(sorted(found, key=len, reverse=True)))

    def text(self, text: str) -> str:
        """The text without them, and of bounded length."""
        for value in self.values:
            text = text.replace(value, "***")
        text = _LOGIN.sub(r"\1***@", text)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

    def alert(self, alert: Alert) -> Alert:
        """The alert without them."""
        numbers = {
            name: self.text(value) if isinstance(value, str) else value
            for name, value in alert.numbers.items()
        }
        return replace(
            alert,
            what=self.text(alert.what),
            cause=self.text(alert.cause),
            command=self.text(alert.command),
            numbers=numbers,
        )
