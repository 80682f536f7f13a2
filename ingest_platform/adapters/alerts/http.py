"""One POST of JSON, with errors that name the host and never the address, which is a secret."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import httpx

from ingest_platform.adapters.alerts.channel import DeliveryFailed

# At INFO it logs every address that it asks, and those of chat webhooks are secrets.
logging.getLogger("httpx").setLevel(logging.WARNING)


def post(
    url: str,
    document: Mapping[str, Any],
    timeout: float,
    headers: Mapping[str, str] | None = None,
) -> None:
    """POST, and take any 2xx as taken. Redirects are not followed: they could lead a secret away.

    Args:
        url: May be a secret.
        document: The body.
        timeout: Seconds for each step: connecting, sending, and waiting for the answer.
        headers: More headers.

    Raises:
        DeliveryFailed: It was not taken, or no answer came.
    """
    host = "the configured address"
    try:
        address = httpx.URL(url)
        host = address.host or host
        answer = httpx.post(address, json=document, timeout=timeout, headers=dict(headers or {}))
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError) as error:
        # Not chained: the text of these may quote address or token.
        reason = f"{host} cannot be asked: address or token are malformed ({type(error).__name__})"
        raise DeliveryFailed(reason) from None
    except httpx.TimeoutException as error:
        raise DeliveryFailed(f"{host} did not answer within {timeout:g} s") from error
    except httpx.HTTPError as error:
        raise DeliveryFailed(f"{host} cannot be reached: {type(error).__name__}") from error
    if not answer.is_success:
        # Its text is left out: it may quote what it was sent.
        raise DeliveryFailed(f"{host} answered HTTP {answer.status_code}", _wait(answer))


def _wait(answer: httpx.Response) -> float:
    """`Retry-After` in seconds; its other form, a date, is left to the ordinary backoff."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0
