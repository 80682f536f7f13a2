"""How long removed files are kept, and when keeping them for less is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ingest_platform.errors import UnsafeRetentionError
from ingest_platform.maintain.table_properties import (
    DEFAULT_FILE_RETENTION,
    DEFAULT_LOG_RETENTION,
    interval,
)

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"

# A reader keeps the version it began with, and a writer's files are in no version until it
# commits: VACUUM takes the files of both that are older than the retention.
SHORTEST: Final = timedelta(hours=1)

_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Retention:
    """What a vacuum keeps.

    Attributes:
        keep: Files that were removed, or written, within this time stay.
        promised: What the table's property promises to readers and time travel.
        overridden: Why a person wanted less than is safe; None if it is safe.
    """

    keep: timedelta
    promised: timedelta
    overridden: str | None = None

    @property
    def hours(self) -> int | None:
        """For `RETAIN n HOURS`; None where the table's property says it already."""
        return None if self.keep == self.promised else round(self.keep / _HOUR)


def retention(
    properties: Mapping[str, str],
    *,
    where: str,
    wanted: timedelta | None = None,
    override: str | None = None,
) -> Retention:
    """What to keep, from the table's properties and what a person asks for.

    Args:
        properties: The table's.
        where: The table, for messages.
        wanted: Instead of the property, in whole hours.
        override: Why less than is safe shall be kept; goes into the table's history.

    Raises:
        UnsafeRetentionError: Less than is safe would be kept, and nobody said why.
    """
    promised = _duration(properties, FILES, DEFAULT_FILE_RETENTION, where)
    log_kept = _duration(properties, LOG, DEFAULT_LOG_RETENTION, where)
    if log_kept < promised:
        raise UnsafeRetentionError(
            f"the log is kept for {_text(log_kept)}, removed files for {_text(promised)}: versions "
            "whose files are there could not be read",
            where=where,
            remedy=f"set {LOG} to at least {FILES}",
        )
    keep = promised if wanted is None else wanted
    if keep % _HOUR and keep != promised:
        raise UnsafeRetentionError(
            f"a retention of {_text(keep)} is not a whole number of hours",
            where=where,
            remedy="give whole hours, such as 24h",
        )
    danger = _danger(keep, promised)
    if danger and not override:
        raise UnsafeRetentionError(
            f"keeping removed files for {_text(keep)} only is unsafe: {danger}",
            where=where,
            remedy=f"keep them for {_text(max(promised, SHORTEST))}; or, if no reader, writer or "
            "time travel needs them, say why with --unsafe-retention 'REASON'",
        )
    return Retention(keep, promised, override if danger else None)


def _danger(keep: timedelta, promised: timedelta) -> str | None:
    if keep < promised:
        return f"the table promises {_text(promised)} to running readers and time travel"
    if keep < SHORTEST:
        return "a query or a batch that takes longer would lose its files"
    return None


def _duration(
    properties: Mapping[str, str], name: str, default: timedelta, where: str
) -> timedelta:
    text = properties.get(name)
    found = default if text is None else interval(text)
    if found is None:
        raise UnsafeRetentionError(
            f"{name}={text!r} is not an interval",
            where=where,
            remedy=f"set it to a value such as 'interval {default.days} days'",
        )
    return found


def _text(value: timedelta) -> str:
    hours = value / _HOUR
    if hours >= 48 and hours % 24 == 0:
        return f"{hours / 24:g} days"
    return f"{hours:g} hours" if hours >= 1 else f"{value.total_seconds() / 60:g} minutes"
