"""Delta table properties whose values need reading."""

from __future__ import annotations

import re
from datetime import timedelta

DEFAULT_LOG_RETENTION = timedelta(days=30)
DEFAULT_FILE_RETENTION = timedelta(days=7)

_PART = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-z]+?)s?(?:\s+|$)", re.IGNORECASE)
_SECONDS = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}


def interval(text: str) -> timedelta | None:
    """Read Spark's calendar interval, such as `interval 30 days` or `1 day 12 hours`.

    None for what is not one, and for months and years, which Delta refuses too.
    """
    body = text.strip().lower().removeprefix("interval").strip()
    parts = _PART.findall(body)
    if not parts or _PART.sub("", body).strip() or any(unit not in _SECONDS for _, unit in parts):
        return None
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))
