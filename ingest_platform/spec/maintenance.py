"""How a table is kept in shape: the `maintenance` section of a stream's spec."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ingest_platform.spec.fields import Duration, Frozen, Name

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"\s*(\d+)\s*([bkmgt]?)(?:i?b)?\s*", re.IGNORECASE)
_MINUTES = 60
_DAY = 24 * 60


def _parse_size(value: Any) -> Any:
    """Accept `256m`, `20 GB` beside a number of bytes; units are powers of 1024."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2].lower()] if match else value


Bytes = Annotated[int, Field(gt=0), BeforeValidator(_parse_size, json_schema_input_type=str | int)]


def _clock_minutes(value: timedelta) -> int:
    """Whole minutes of an interval that a daily clock repeats.

    Raises:
        ValueError: It would drift against the clock, so it has no cron expression.
    """
    minutes, rest = divmod(value.total_seconds(), 60)
    in_hour = minutes < _MINUTES and minutes and _MINUTES % minutes == 0
    in_day = minutes and minutes % _MINUTES == 0 and _DAY % minutes == 0
    if rest or not (in_hour or in_day):
        raise ValueError(
            "must divide an hour or a day: 5 minutes, 15 minutes, 1 hour, 6 hours, 1 day"
        )
    return int(minutes)


class Repeated(Frozen):
    """What is done again and again, by the clock.

    Attributes:
        enabled: Whether the platform does it at all; `ingest-platform compact` and `vacuum` work
            either way.
    """

    enabled: bool = Field(default=True, description="Whether a schedule does it.")
    every: Duration

    @field_validator("every")
    @classmethod
    def _has_a_clock_time(cls, value: timedelta) -> timedelta:
        _clock_minutes(value)
        return value

    @property
    def cron(self) -> str:
        """The schedule as a cron expression, aligned to the hour or to midnight."""
        minutes = _clock_minutes(self.every)
        if minutes < _MINUTES:
            return f"*/{minutes} * * * *"
        return f"0 */{minutes // _MINUTES} * * *" if minutes < _DAY else "0 0 * * *"

    @property
    def interval_name(self) -> str:
        """The interval as a part of names: `15m`, `1h`, `1d`."""
        minutes = _clock_minutes(self.every)
        if minutes < _MINUTES:
            return f"{minutes}m"
        return f"{minutes // _MINUTES}h" if minutes < _DAY else "1d"


class CompactionSpec(Repeated):
    """Which small files are put together, and how much of that at once."""

    every: Duration = Field(default=timedelta(minutes=15), description="Time between runs.")
    target_file_size: Bytes = Field(
        default=256 << 20,
        description="Size that files are packed to; those below half of it count as small.",
    )
    min_files: int = Field(
        default=5, ge=1, description="A partition is left alone if this saves fewer files."
    )
    settle: Duration = Field(
        default=timedelta(minutes=10),
        description="A partition is still being written for so long after its last new file.",
    )
    hot_files: int = Field(
        default=100,
        ge=2,
        description="So many small files are put together even while the partition is written.",
    )
    max_bytes: Bytes = Field(default=20 << 30, description="Read in one run, at most.")
    commit_bytes: Bytes = Field(
        default=2 << 30, description="Read for one commit, about: what a kill can undo."
    )
    z_order: tuple[str, ...] = Field(
        default=(),
        description="Cluster settled partitions by these columns; rewrites all files.",
    )


class VacuumSpec(Repeated):
    """How files that no version within the retention needs are deleted.

    How long removed files are kept is the table's property `delta.deletedFileRetentionDuration`,
    since every other program that vacuums the table must keep to it too.
    """

    every: Duration = Field(default=timedelta(hours=1), description="Time between runs.")
    full_every: Duration = Field(
        default=timedelta(days=1),
        description="Storage is listed that often, to find what killed writers left; "
        "in between the log tells.",
    )
    deletes_per_second: int = Field(
        default=2000,
        gt=0,
        description="Files per second at most; S3 allows 3,500 writes.",
    )


class MaintenanceSpec(Frozen):
    """Compaction and vacuum of one table."""

    lane: Name = Field(
        default="shared",
        description="Tables of one lane are maintained by one driver, one after the other.",
    )
    timeout: Duration = Field(
        default=timedelta(hours=1), description="A run that takes longer is ended."
    )
    driver_memory: str = Field(
        default="2g", pattern=r"^\d+[mg]$", description="Heap of the maintenance driver."
    )
    nice: int = Field(
        default=10,
        ge=0,
        le=19,
        description="Priority of the maintenance driver, as `nice` counts it: a stream's driver on "
        "the same host goes first. 0: as equals.",
    )
    compaction: CompactionSpec = CompactionSpec()
    vacuum: VacuumSpec = VacuumSpec()

    @model_validator(mode="after")
    def _sane(self) -> Self:
        if self.timeout < timedelta(minutes=2):
            raise ValueError("`timeout` must be at least 2 minutes: Spark has to start")
        if self.vacuum.full_every < self.vacuum.every:
            raise ValueError("`vacuum.full_every` must not be shorter than `vacuum.every`")
        return self
