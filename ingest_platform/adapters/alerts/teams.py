"""Microsoft Teams: an Adaptive Card to a Workflows webhook, which older connectors take too.

https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ingest_platform.adapters.alerts.channel import secret
from ingest_platform.adapters.alerts.http import post
from ingest_platform.adapters.alerts.text import cut, details, headline, title
from ingest_platform.model.alert import Severity, Transition
from ingest_platform.spec.alerts import TeamsChannel

_CARD = "application/vnd.microsoft.card.adaptive"
_COLOURS = {
    Severity.WARNING: "warning",
    Severity.ERROR: "attention",
    Severity.CRITICAL: "attention",
}
_TEXT, _ALERTS = 1000, 10  # a message of more than 28 kB is refused


class Teams:
    """A `Sender`."""

    def __init__(self, spec: TeamsChannel, environ: Mapping[str, str]) -> None:
        self._url = secret(environ, spec.url_env)

    def __call__(self, told: Sequence[Transition], timeout: float) -> None:
        """Send one card."""
        post(self._url, message(told), timeout)


def message(told: Sequence[Transition]) -> dict[str, Any]:
    """A message with one card."""
    body = [block for transition in told[:_ALERTS] for block in _blocks(transition)]
    if len(told) > _ALERTS:
        more = f"… and {len(told) - _ALERTS} more: ingest-platform alerts list"
        body.append({"type": "TextBlock", "text": more, "wrap": True})
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": cut(title(told), _TEXT),
        "body": body,
    }
    return {"type": "message", "attachments": [{"contentType": _CARD, "content": card}]}


def _blocks(told: Transition) -> Iterator[dict[str, Any]]:
    colour = "good" if told.resolves else _COLOURS[told.alert.severity]
    yield {
        "type": "TextBlock",
        "text": _plain(headline(told)),
        "weight": "bolder",
        "color": colour,
        "wrap": True,
        "separator": True,
    }
    facts = [{"title": name, "value": _plain(text)} for name, text in details(told)]
    yield {"type": "FactSet", "facts": facts}


def _plain(text: str) -> str:
    """Cards render Markdown: without its links, an error's text cannot become one."""
    return cut(text, _TEXT).replace("[", "\\[")
