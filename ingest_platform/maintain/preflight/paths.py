"""Are the places fit for their purpose, and does each belong to one stream only?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import permutations

from ingest_platform.maintain.preflight.findings import USER, Finding, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.maintain.table_properties import (
    DEFAULT_FILE_RETENTION,
    DEFAULT_LOG_RETENTION,
    interval,
)
from ingest_platform.spec import StreamSpec

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_SAFE_MANAGER = "AbortableStreamBasedCheckpointFileManager"
_FAST_LIST = "delta.enableFastS3AListFrom"


def check_paths(spec: StreamSpec) -> Iterator[Finding]:
    """What can be said of one stream's paths and retention."""
    problems = [*_checkpoint(spec), *_master(spec), *_retention(spec), *_listing(spec)]
    yield from problems
    if not any(finding.level is Level.ERROR for finding in problems):
        yield ok(Group.PATHS, f"checkpoint below {spec.state_dir}", spec.name)


def check_paths_apart(specs: Sequence[StreamSpec]) -> Iterator[Finding]:
    """What can be said of the deployment: no two streams share a place, or lie in one another."""
    names: dict[str, int] = defaultdict(int)
    for spec in specs:
        names[spec.name] += 1
    for name, count in names.items():
        if count > 1:
            yield _error(
                Kind.SAME_NAME,
                f"{count} specs are named {name}",
                "they would share a lease, a status and perhaps a checkpoint",
                "rename all but one",
                name,
            )
    for a, b in permutations(specs, 2):
        yield from _between(a, b)


def _between(a: StreamSpec, b: StreamSpec) -> Iterator[Finding]:
    """What `a` has inside of `b`'s tables; asked both ways, so equal paths are told once."""
    for outer in (b.table.path, b.table.quarantine):
        for inner in (a.table.path, a.table.quarantine, a.state_dir):
            if inner == outer and a.name < b.name:
                yield _error(
                    Kind.SAME_PATH,
                    f"streams {a.name} and {b.name} both write {inner}",
                    "an audit or a repair of one would take the other's rows for its own",
                    "give each stream a path of its own",
                    a.name,
                )
            elif inner.startswith(f"{outer}/"):
                yield _error(
                    Kind.PATH_INSIDE,
                    f"{inner} of stream {a.name} lies inside {outer} of stream {b.name}",
                    "VACUUM of the outer table deletes the files of the inner place",
                    "put it beside the table, not inside of it",
                    a.name,
                )


def _checkpoint(spec: StreamSpec) -> Iterator[Finding]:
    manager = spec.spark.conf.get(_MANAGER, _SAFE_MANAGER)
    if spec.state_dir.startswith("s3a://") and not manager.endswith(_SAFE_MANAGER):
        yield _error(
            Kind.CHECKPOINT_MANAGER,
            f"the checkpoint is on S3, but {_MANAGER} is {manager}",
            "it renames files, which on S3 is a copy and not atomic: a crash leaves a torn one",
            f"remove {_MANAGER} from spark.conf",
            spec.name,
        )


def _master(spec: StreamSpec) -> Iterator[Finding]:
    local = [p for p in (spec.table.path, spec.state_dir) if not p.startswith("s3a://")]
    if local and not spec.spark.master.startswith("local"):
        yield Finding(
            Level.WARNING,
            Group.PATHS,
            Kind.LOCAL_PATHS,
            f"{' and '.join(local)} are local, but Spark's master is {spec.spark.master}",
            "every executor must see the same folder, or each writes to its own disk",
            "mount shared storage there, or use s3a://",
            spec.name,
        )


def _retention(spec: StreamSpec) -> Iterator[Finding]:
    properties = spec.table.properties
    log = _duration(properties.get("delta.logRetentionDuration"), DEFAULT_LOG_RETENTION)
    files = _duration(properties.get("delta.deletedFileRetentionDuration"), DEFAULT_FILE_RETENTION)
    if log is None or files is None:
        yield _error(
            Kind.RETENTION_UNREADABLE,
            "a retention duration in table.properties is not an interval of Delta",
            "the table cannot be made",
            "write e.g. interval 30 days",
            spec.name,
        )
    elif log < files:
        yield _error(
            Kind.RETENTION_ORDER,
            f"delta.logRetentionDuration ({log}) is shorter than "
            f"delta.deletedFileRetentionDuration ({files})",
            "VACUUM LITE cannot find files whose log entries have expired",
            "make the log's retention the longer one",
            spec.name,
        )
    elif files < timedelta(days=1):
        yield Finding(
            Level.WARNING,
            Group.PATHS,
            Kind.RETENTION_SHORT,
            f"delta.deletedFileRetentionDuration is {files}",
            "a reader or a restore that takes longer loses its files to VACUUM",
            "keep deleted files for a day at least",
            spec.name,
        )


def _listing(spec: StreamSpec) -> Iterator[Finding]:
    for key in (_FAST_LIST, f"spark.hadoop.{_FAST_LIST}"):
        if spec.spark.conf.get(key, "false").lower() == "true":
            yield _error(
                Kind.FAST_LISTING,
                f"{key} is on",
                "Delta 4.4.0 then reads wrong snapshots (delta-io/delta#7451)",
                f"remove {key} from spark.conf",
                spec.name,
            )


def _duration(text: str | None, default: timedelta) -> timedelta | None:
    return default if text is None else interval(text)


def _error(kind: Kind, what: str, why: str, remedy: str, stream: str) -> Finding:
    return Finding(Level.ERROR, Group.PATHS, kind, what, why, remedy, stream, USER)
