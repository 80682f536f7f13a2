"""Slack, by incoming webhook.

https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest_platform.adapters.alerts.channel import secret
from ingest_platform.adapters.alerts.http import post
from ingest_platform.adapters.alerts.text import cut, details, headline, title
from ingest_platform.model.alert import Severity, Transition
from ingest_platform.spec.alerts import SlackChannel

_SECTION, _BLOCKS = 3000, 45  # Slack refuses longer sections, and more than 50 blocks
_MARKS = {Severity.WARNING: "⚠️", Severity.ERROR: "❗", Severity.CRITICAL: "🚨"}


class Slack:
    """A `Sender`."""

    def __init__(self, spec: SlackChannel, environ: Mapping[str, str]) -> None:
        self._url = secret(environ, spec.url_env)

    def __call__(self, told: Sequence[Transition], timeout: float) -> None:
        """Send one message."""
        post(self._url, message(told), timeout)


def message(told: Sequence[Transition]) -> dict[str, Any]:
    """Blocks, and a text for notifications."""
    blocks = [_section(_text(transition)) for transition in told[:_BLOCKS]]
    if len(told) > _BLOCKS:
        blocks.append(_section(f"… and {len(told) - _BLOCKS} more: `ingest-platform alerts list`"))
    return {"text": cut(_escaped(title(told)), _SECTION), "blocks": blocks}


def _text(told: Transition) -> str:
    mark = "✅" if told.resolves else _MARKS[told.alert.severity]
    lines = [f"{mark} *{_escaped(headline(told))}*"]
    for name, text in details(told):
        shown = f"`{_escaped(text)}`" if name == "run" else _escaped(text)
        lines.append(f"*{_escaped(name)}*: {shown}")
    return "\n".join(lines)


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": cut(text, _SECTION)}}


def _escaped(text: str) -> str:
    """Slack's three control characters, so that no text can become a link or a mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
