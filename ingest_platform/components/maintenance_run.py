"""What a maintenance run is about, and how it fails, wherever its driver runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import dagster as dg

from ingest_platform.spec import StreamSpec

Results = Iterator[dg.MaterializeResult | dg.AssetCheckResult]


@dataclass(frozen=True)
class Table:
    """A stream's table, and the file that declares it."""

    spec: StreamSpec
    path: Path


def refuse_failure(code: int | None, timeout: timedelta, tail: str, log: dg.MetadataValue) -> None:
    """Fail the run unless its driver ended well.

    Args:
        code: The driver's exit code; None if it had to be ended.
        timeout: What it was given.
        tail: End of its log.
        log: Where that is.

    Raises:
        dagster.Failure: With the tail.
    """
    if code == 0:
        return
    end = f"ended with exit code {code}"
    if code is None:
        end = f"was ended after {timeout}, the tables' `maintenance.timeout`"
    raise dg.Failure(
        f"The maintenance driver {end}; the end of its log:\n{tail}",
        metadata={"log": log},
        allow_retries=False,
    )
