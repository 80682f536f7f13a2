"""What a Parquet file's footer already says, so that no second pass over the rows has to.

Delta evaluates expressions on every row for its statistics: a tenth of a large batch's CPU. The
Parquet writer has kept the same minima, maxima and null counts anyway. Formats follow
"Per-file Statistics" of the Delta protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from ingest_platform.spec import StorageEnvironment

ReadFooter = Callable[[str], pq.FileMetaData]

INDEXED_COLUMNS: Final = 32  # Delta's default for delta.dataSkippingNumIndexedCols
_PREFIX: Final = 32  # characters of a string that Delta keeps
_LAST_CHARACTER: Final = "\U0010ffff"


def footer_reader(table: str, storage: StorageEnvironment) -> ReadFooter:
    """A function from a data file's path, relative to `table`, to its footer."""
    if not table.startswith("s3a://"):
        return lambda path: pq.read_metadata(Path(table) / path)
    from pyarrow import fs  # noqa: PLC0415  (loads the AWS SDK: only for those who use S3)

    secret, token = storage.secret_access_key, storage.session_token
    endpoint = storage.endpoint_url or ""
    s3 = fs.S3FileSystem(
        access_key=storage.access_key_id,
        secret_key=secret.get_secret_value() if secret else None,
        session_token=token.get_secret_value() if token else None,
        region=storage.region,
        endpoint_override=endpoint.partition("://")[2] or None,
        scheme=endpoint.partition("://")[0] or "https",
    )
    root = table.removeprefix("s3a://")
    return lambda path: pq.read_metadata(f"{root}/{path}", filesystem=s3)


def statistics(footer: pq.FileMetaData) -> dict[str, Any]:
    """Delta's statistics of one file.

    What the footer does not know exactly is left out, which readers must accept: they then do not
    skip the file by that column.
    """
    stats: dict[str, Any] = {"numRecords": footer.num_rows}
    minima: dict[str, Any] = {}
    maxima: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    for index in range(min(footer.num_columns, INDEXED_COLUMNS)):
        column = footer.schema.column(index)
        known = [group.column(index).statistics for group in groups]
        if column.max_repetition_level or not known or any(s is None for s in known):
            continue
        path = column.path.split(".")
        if all(s.has_null_count for s in known):
            _put(nulls, path, sum(s.null_count for s in known))
        bounded = [s for s in known if s.num_values]
        if bounded and all(s.has_min_max for s in bounded):
            low, high = min(s.min for s in bounded), max(s.max for s in bounded)
            _put(minima, path, _lower(low))
            _put(maxima, path, _upper(high))
    return stats | {"minValues": minima, "maxValues": maxima, "nullCount": nulls}


def without_dictionary(footers: Iterable[pq.FileMetaData]) -> set[str]:
    """Columns whose dictionary was given up half way: nearly every value differs.

    Building it was work for nothing (another tenth of a large batch's CPU), so the next batch does
    not try. Pages of version 1, which Spark writes, name the two encodings apart.
    """
    return {
        chunk.path_in_schema
        for footer in footers
        for group in (footer.row_group(i) for i in range(footer.num_row_groups))
        for chunk in (group.column(i) for i in range(footer.num_columns))
        if {"PLAIN_DICTIONARY", "PLAIN"} <= set(chunk.encodings)
    }


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _lower(value: Any) -> Any:
    return value[:_PREFIX] if isinstance(value, str) else _plain(value)


def _upper(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _PREFIX:
        # Any text with this prefix sorts before the prefix with the last character behind it.
        return value[:_PREFIX] + _LAST_CHARACTER
    return _plain(value)


def _plain(value: Any) -> Any:
    """A value in JSON; None for types of which Delta keeps no bounds."""
    if isinstance(value, bool | bytes):
        return None
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, datetime):
        # Only instants; readers know that milliseconds are cut off and widen the maximum.
        return _instant(value) if value.tzinfo else None
    return value.isoformat() if isinstance(value, date) else None


def _instant(value: datetime) -> str:
    return (
        value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    )


def newest(stats: Iterable[Mapping[str, Any]], column: str) -> str | None:
    """The greatest maximum of a timestamp column over several files' statistics."""
    return max((str(s.get("maxValues", {}).get(column) or "") for s in stats), default="") or None
