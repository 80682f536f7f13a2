"""Times in documents: ISO 8601 text, UTC unless it says otherwise."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time by this host's clock."""
    return datetime.now(UTC)


def parse_time(text: str | None) -> datetime | None:
    """An aware time; None for text that is empty or no time, as in a document half known."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
