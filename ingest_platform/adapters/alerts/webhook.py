"""Any receiver of JSON. docs/operations.md gives the document's shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ingest_platform.adapters.alerts.channel import secret
from ingest_platform.adapters.alerts.http import post
from ingest_platform.adapters.alerts.text import title
from ingest_platform.model.alert import Transition
from ingest_platform.spec.alerts import WebhookChannel


class Webhook:
    """A `Sender`."""

    def __init__(self, spec: WebhookChannel, environ: Mapping[str, str]) -> None:
        self._url = secret(environ, spec.url_env)
        token = secret(environ, spec.token_env) if spec.token_env else ""
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __call__(self, told: Sequence[Transition], timeout: float) -> None:
        """Send one document; `Idempotency-Key` is the same for every repetition of it."""
        again = {"Idempotency-Key": " ".join(transition.id for transition in told)}
        post(self._url, message(told), timeout, {**self._headers, **again})


def message(told: Sequence[Transition]) -> dict[str, Any]:
    """Everything that is known."""
    return {
        "title": title(told),
        "stream": told[0].alert.stream or None,
        "alerts": [
            {
                "id": transition.id,
                "key": transition.alert.key,
                "status": "resolved" if transition.resolves else "raised",
                "at": transition.at,
                "why": transition.why,
                **asdict(transition.alert),
            }
            for transition in told
        ],
    }
