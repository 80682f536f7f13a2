"""Field types that specs share: durations, names, paths, partition transforms."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

_UNIT_SECONDS = {
    **{"ms": 0.001, "millisecond": 0.001, "milliseconds": 0.001},
    **{"s": 1, "sec": 1, "second": 1, "seconds": 1},
    **{"m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60},
    **{"h": 3600, "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400},
    **{"week": 604800, "weeks": 604800},
}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


class Frozen(BaseModel):
    """A spec section: immutable, and a key that it does not know is an error, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def _parse_duration(value: Any) -> Any:
    """Accept Spark's interval style (`15 seconds`, `5m`, `20h`) beside what pydantic accepts."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value)
    if match is None:
        return value  # pydantic knows ISO 8601 and will say what it expects
    seconds = _UNIT_SECONDS.get(match[2].lower())
    if seconds is None:
        raise ValueError(f"{value!r}: unknown unit {match[2]!r}; write e.g. 15 seconds, 5m or 20h")
    return timedelta(seconds=float(match[1]) * seconds)


Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration, json_schema_input_type=str | float),
    PlainSerializer(lambda value: f"{value.total_seconds():g} seconds", return_type=str),
]


def _off_is_no_boolean(value: Any) -> Any:
    """YAML 1.1 reads a bare `off` as false."""
    return "off" if value is False else value


AutoCompaction = Annotated[
    Literal["off", "inline", "async"],
    BeforeValidator(
        _off_is_no_boolean, json_schema_input_type=Literal["off", "inline", "async", False]
    ),
]

# Names become folder names, run tags, asset keys, Kubernetes labels and txnAppIds: the
# intersection of what those accept, so that no caller has to escape anything.
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,47}$")]

Topic = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]


def _check_path(value: str) -> str:
    scheme, separator, rest = value.partition("://") if "://" in value else ("", "", value)
    if separator and scheme not in {"s3a", "s3", "file"}:
        raise ValueError(f"{value!r}: scheme {scheme!r} is not one of s3a, s3, file")
    # '#' ends a path for delta-rs, and '`' ends it in SQL: they would see another table.
    if any(ord(c) < 32 or c in "\\*?[]{}#`" for c in value):
        raise ValueError(f"{value!r}: control characters, \\ * ? [ ] {{ }} # ` are not allowed")
    on_s3 = scheme in {"s3a", "s3"}
    if on_s3 == rest.startswith("/"):
        raise ValueError(f"{value!r}: write an absolute path or s3a://bucket/prefix")
    parts = rest.strip("/").split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise ValueError(f"{value!r}: empty parts, '.' and '..' are not allowed")
    if on_s3 and len(parts) == 1:
        raise ValueError(f"{value!r}: name a prefix below the bucket, not the bucket itself")
    return f"{'s3a://' if on_s3 else '/'}{'/'.join(parts)}"


StoragePath = Annotated[str, AfterValidator(_check_path)]

_TRANSFORM = re.compile(r"(hours|days)\((\w+)\)|(\w+)")


class PartitionColumn(Frozen):
    """One partition column: a column of the table, or a time transform of one.

    Attributes:
        name: Name of the column in the table.
        expression: SQL that Delta generates it from; None for a plain column.
        type: SQL type; None for a plain column.
    """

    name: str
    expression: str | None = None
    type: str | None = None
    source: str

    @classmethod
    def parse(cls, text: str) -> PartitionColumn:
        """Read `hours(ts)`, `days(ts)` or `country`.

        The expressions are ones that Delta derives partition filters from, so a query that
        filters on `ts` prunes partitions by itself.
        """
        match = _TRANSFORM.fullmatch(text.replace(" ", ""))
        if match is None:
            raise ValueError(f"{text!r} is not a column, hours(column) or days(column)")
        transform, column, plain = match.groups()
        if transform == "hours":
            return cls(
                name=f"{column.lstrip('_')}_hour",
                expression=f"date_format({column}, 'yyyy-MM-dd-HH')",
                type="STRING",
                source=column,
            )
        if transform == "days":
            return cls(
                name=f"{column.lstrip('_')}_day",
                expression=f"CAST({column} AS DATE)",
                type="DATE",
                source=column,
            )
        return cls(name=plain, source=plain)
