"""What one maintenance run did to one table: for the UI, the command line and the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ingest_platform.errors import IngestError

# What is told of a quarantine table.
_OF_QUARANTINE = ("files_before", "files_after", "files_removed", "files_deleted")


def _no_numbers() -> Mapping[str, float]:
    return {}


def _no_counts() -> Mapping[str, int]:
    return {}


@dataclass(frozen=True)
class TableReport:
    """One table's outcome.

    Attributes:
        name: The stream whose table it is.
        done: What was done, in a sentence; also when that is nothing.
        numbers: Counts, bytes and seconds by name; the same names in every run, so that they can
            be plotted.
        skipped: Number of partitions by the reason for leaving them alone.
        error: Why the table could not be maintained.
    """

    name: str
    done: str
    numbers: Mapping[str, float] = field(default_factory=_no_numbers)
    skipped: Mapping[str, int] = field(default_factory=_no_counts)
    error: IngestError | None = None

    def with_quarantine(self, beside: TableReport) -> TableReport:
        """This table's report with that of its quarantine table: its numbers, and its error."""
        told = [name for name in _OF_QUARANTINE if name in self.numbers]
        numbers = {f"quarantine_{name}": beside.numbers.get(name, 0) for name in told}
        return replace(self, numbers={**self.numbers, **numbers}, error=self.error or beside.error)

    def to_dict(self) -> dict[str, Any]:
        """As the command line's JSON has it."""
        error = None
        if self.error:
            found = self.error
            error = {"kind": type(found).__name__, "what": found.what, "remedy": found.remedy}
        return {
            "name": self.name,
            "done": self.done,
            **self.numbers,
            "skipped": dict(self.skipped),
            "error": error,
        }
