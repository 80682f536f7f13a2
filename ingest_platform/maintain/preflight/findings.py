"""What a check says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from ingest_platform.errors import DataProblem, EnvironmentFault, IngestError, UserError

USER = UserError.exit_code
ENVIRONMENT = EnvironmentFault.exit_code
DATA = DataProblem.exit_code


class Level(StrEnum):
    """How bad a finding is; only an error keeps a stream from starting."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Group(StrEnum):
    """What a finding is about, in the order in which the groups are shown."""

    SPEC = "spec"
    VERSIONS = "versions"
    KAFKA = "kafka"
    STORAGE = "storage"
    TABLE = "table"
    PATHS = "paths"
    SECRETS = "secrets"
    CAPACITY = "capacity"
    ALERTS = "alerts"


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        level: How bad it is.
        group: What it is about.
        what: What was found, with the value.
        why: What happens because of it; empty for what is well.
        remedy: What to do; empty for what is well.
        stream: The stream concerned; None for the whole deployment.
        exit_code: That of the error class it belongs to; counts for errors only.
    """

    level: Level
    group: Group
    what: str
    why: str = ""
    remedy: str = ""
    stream: str | None = None
    exit_code: int = ENVIRONMENT

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of one finding in `ingest-platform check --json`."""
        return asdict(self)


def ok(group: Group, what: str, stream: str | None = None) -> Finding:
    """All is well; said so that a reader sees what was checked."""
    return Finding(Level.OK, group, what, stream=stream)


def of_error(
    group: Group,
    error: IngestError,
    why: str,
    stream: str | None = None,
    level: Level = Level.ERROR,
) -> Finding:
    """An error of the tree, met while checking."""
    what = f"{error.what} ({error.where})" if error.where else error.what
    return Finding(level, group, what, why, error.remedy, stream, error.exit_code)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 without errors, otherwise the highest of their codes: 2 user, 3 environment, 4 data."""
    return max((f.exit_code for f in findings if f.level is Level.ERROR), default=0)
