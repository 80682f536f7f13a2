"""Limits of a table's asset checks: the `checks` section of a stream's spec."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from ingest_platform.spec.fields import Duration, Frozen


class ChecksSpec(Frozen):
    """When a check warns, and when it fails; the limits of the lag are those of `freshness`."""

    quarantine_warn: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="Part of the last batches' records in quarantine that warns; 0: any.",
    )
    quarantine_fail: float = Field(
        default=0.1, ge=0, le=1, description="The part that fails; 1: only if all of them are."
    )
    small_files_warn: int = Field(
        default=5_000, gt=0, description="So many files below 32 MB: is compaction running?"
    )
    small_files_fail: int = Field(
        default=50_000, gt=0, description="So many, and readers of the table suffer."
    )

    topic_retention: Duration = Field(
        default=timedelta(hours=72),
        description="`ingest-platform check` warns when the topic keeps records for less: what "
        "fails on Friday evening can be mended on Monday.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.quarantine_warn > self.quarantine_fail:
            raise ValueError("needs quarantine_warn <= quarantine_fail")
        if self.small_files_warn > self.small_files_fail:
            raise ValueError("needs small_files_warn <= small_files_fail")
        return self
