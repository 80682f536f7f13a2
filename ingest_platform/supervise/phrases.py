"""Phrases that several reasons share."""

from __future__ import annotations

from datetime import timedelta

from ingest_platform.model.status import Status


def where(status: Status) -> str:
    """Which driver, and where: `generation 3 on worker`."""
    return f"generation {status.generation} on {status.runs_at.host}"


def because(reason: str) -> str:
    """The reason in parentheses, if there is one."""
    return f" ({reason})" if reason else ""


def ago(span: timedelta) -> str:
    """A span in one unit, coarse enough to read: `75 s`, `3 min`, `20 h`."""
    seconds = max(0, round(span.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
