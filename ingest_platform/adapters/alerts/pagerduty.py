"""PagerDuty, by Events API v2.

https://developer.pagerduty.com/docs/send-alert-event
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest_platform.adapters.alerts.channel import secret
from ingest_platform.adapters.alerts.http import post
from ingest_platform.adapters.alerts.text import DEPLOYMENT_TITLE, cut, details, headline
from ingest_platform.model.alert import Transition
from ingest_platform.spec.alerts import PagerDutyChannel

_SUMMARY, _KEY = 1024, 255


class PagerDuty:
    """A `Sender`: one event each, since an incident is resolved by its own key."""

    def __init__(self, spec: PagerDutyChannel, environ: Mapping[str, str]) -> None:
        self._endpoint = spec.endpoint
        self._routing_key = secret(environ, spec.routing_key_env)

    def __call__(self, told: Sequence[Transition], timeout: float) -> None:
        """Send each; those that arrived before one failed do no harm when they are repeated."""
        for transition in told:
            document = {"routing_key": self._routing_key, **event(transition)}
            post(self._endpoint, document, timeout)


def event(told: Transition) -> dict[str, Any]:
    """Trigger or resolve, without the routing key; the `dedup_key` ties the two together."""
    alert = told.alert
    key = cut(f"ingest-platform/{alert.key}", _KEY)
    if told.resolves:
        return {"event_action": "resolve", "dedup_key": key}
    return {
        "event_action": "trigger",
        "dedup_key": key,
        "client": "ingest-platform",
        "payload": {
            "summary": cut(headline(told), _SUMMARY),
            "source": alert.stream or DEPLOYMENT_TITLE,
            "severity": str(alert.severity),
            "timestamp": alert.since or told.at,
            "component": alert.stream or DEPLOYMENT_TITLE,
            "group": alert.stream or DEPLOYMENT_TITLE,
            "class": str(alert.kind),
            "custom_details": dict(details(told)),
        },
    }
