"""What a check says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ingest_platform.errors import (
    CheckpointDamagedError,
    DataProblem,
    DiskFullError,
    EnvironmentFault,
    IngestError,
    JarLockError,
    JavaNotFoundError,
    KafkaDeniedError,
    KafkaUnreachableError,
    LogDamagedError,
    SpecError,
    StorageDeniedError,
    StorageUnavailableError,
    TopicMissingError,
    UnsafeStorageError,
    UserError,
)
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level

USER = UserError.exit_code
ENVIRONMENT = EnvironmentFault.exit_code
DATA = DataProblem.exit_code

_KINDS: dict[type[IngestError], Kind] = {
    SpecError: Kind.SPEC,
    JavaNotFoundError: Kind.JAVA,
    JarLockError: Kind.VERSIONS,
    KafkaUnreachableError: Kind.KAFKA_UNREACHABLE,
    KafkaDeniedError: Kind.KAFKA_DENIED,
    TopicMissingError: Kind.TOPIC_MISSING,
    StorageDeniedError: Kind.STORAGE_DENIED,
    StorageUnavailableError: Kind.STORAGE_UNAVAILABLE,
    UnsafeStorageError: Kind.CONDITIONAL_WRITES,
    DiskFullError: Kind.DISK_SPACE,
    CheckpointDamagedError: Kind.CHECKPOINT,
    LogDamagedError: Kind.TABLE_LOG,
    IngestError: Kind.OTHER,  # of a check that is newer than this table
}


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        level: How bad it is.
        group: What it is about.
        kind: Which finding it is; docs/check.md describes each.
        what: What was found, with the value.
        why: What happens because of it; empty for what is well.
        remedy: What to do; empty for what is well.
        stream: The stream concerned; None for the whole deployment.
        exit_code: That of the error class it belongs to; counts for errors only.
    """

    level: Level
    group: Group
    kind: Kind
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
    return Finding(Level.OK, group, Kind.OK, what, stream=stream)


def of_error(
    group: Group,
    error: IngestError,
    why: str,
    stream: str | None = None,
    kind: Kind | None = None,
) -> Finding:
    """An error of the tree, met while checking; its class tells the kind, unless `kind` does."""
    what = f"{error.what} ({error.where})" if error.where else error.what
    found = kind or next(_KINDS[cls] for cls in type(error).__mro__ if cls in _KINDS)
    return Finding(Level.ERROR, group, found, what, why, error.remedy, stream, error.exit_code)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 without errors, otherwise the highest of their codes: 2 user, 3 environment, 4 data."""
    return max((f.exit_code for f in findings if f.level is Level.ERROR), default=0)
