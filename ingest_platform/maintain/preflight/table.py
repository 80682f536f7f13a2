"""Does an existing table fit what the spec says of it, and can the installed Delta write it?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ingest_platform.adapters.delta_tables import open_table
from ingest_platform.errors import IngestError
from ingest_platform.maintain.preflight.findings import ENVIRONMENT, USER, Finding, of_error, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.maintain.preflight.secrets import secrets_of
from ingest_platform.maintain.table_properties import (
    DEFAULT_FILE_RETENTION,
    DEFAULT_LOG_RETENTION,
    interval,
)
from ingest_platform.spec import StorageEnvironment, StreamSpec
from ingest_platform.spec.ddl import columns

# What Delta 4.4.0 knows (the classes *TableFeature of its jar); the jar lock pins that version.
_KNOWN = {
    *("adaptiveMetadata-preview", "allowColumnDefaults", "appendOnly", "changeDataFeed"),
    *("checkConstraints", "checkpointProtection", "clustering", "columnMapping"),
    *("deletionVectors", "domainMetadata", "generatedColumns", "geospatial", "icebergCompatV1"),
    *("icebergCompatV2", "icebergCompatV3", "identityColumns", "inCommitTimestamp", "invariants"),
    *("materializePartitionColumns", "rowTracking", "timestampNtz", "typeWidening"),
    *("typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "variantShredding"),
    *("variantShredding-preview", "variantType", "variantType-preview"),
}
# Another service decides which commit wins then, and the platform's LogStore is not asked.
_COMMITS_ELSEWHERE = {"catalogManaged", "coordinatedCommits-preview"}
_READER, _WRITER = 3, 7

_TYPES = {
    **{"tinyint": "byte", "byte": "byte", "smallint": "short", "short": "short"},
    **{"int": "integer", "integer": "integer", "bigint": "long", "long": "long"},
    **{"float": "float", "real": "float", "double": "double", "boolean": "boolean"},
    **{"string": "string", "binary": "binary", "date": "date", "timestamp": "timestamp"},
    **{"timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz"},
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(\d+))?\))?")


def check_table(spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Hold the table's protocol, columns, partitions and properties against the spec."""
    try:
        table = open_table(spec.table.path, StorageEnvironment.from_env(environ))
    except IngestError as error:
        yield of_error(Group.TABLE, error, "the stream cannot tell what it holds", spec.name)
        return
    if table is None:
        return
    protocol, metadata = table.protocol(), table.metadata()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    versions = (protocol.min_reader_version, protocol.min_writer_version)
    fields = json.loads(table.schema().to_json())["fields"]
    problems = [
        *_protocol(spec, versions, features),
        *_columns(spec, fields),
        *_partitions(spec, metadata.partition_columns),
        *_properties(spec, metadata.configuration),
        *_clustering(spec, features),
        *_secrets(spec, metadata.configuration, secrets_of(environ)),
    ]
    yield from problems
    if not problems:
        what = f"table: protocol {versions[0]}/{versions[1]}, {len(fields)} columns fit the spec"
        yield ok(Group.TABLE, what, spec.name)


def _protocol(spec: StreamSpec, versions: tuple[int, int], features: set[str]) -> Iterator[Finding]:
    if versions > (_READER, _WRITER) or versions[1] > _WRITER:
        yield _finding(
            spec,
            Kind.TABLE_PROTOCOL,
            f"the table's protocol is reader {versions[0]}, writer {versions[1]}",
            f"Delta 4.4.0 writes up to reader {_READER}, writer {_WRITER}",
            "write it with the version of Delta that made it, or to a new table",
            code=ENVIRONMENT,
        )
    for feature in sorted(features - _KNOWN):
        elsewhere = feature in _COMMITS_ELSEWHERE
        yield _finding(
            spec,
            Kind.TABLE_FEATURE,
            f"the table uses the feature {feature}",
            "its commits are decided outside of the platform's LogStore"
            if elsewhere
            else "Delta 4.4.0 does not know it, and refuses to write",
            f"drop it: ALTER TABLE ... DROP FEATURE '{feature}'; or write to a new table",
            code=ENVIRONMENT,
        )


def _columns(spec: StreamSpec, fields: list[dict[str, Any]]) -> Iterator[Finding]:
    """Compared where types are plain; the driver compares all of them when it starts."""
    if spec.transform or not spec.decode.schema_:
        return  # only the driver can tell: a function, or a JSON Schema file, makes the columns
    there = {str(field["name"]).lower(): field for field in fields}
    declared = {name.lower(): kind for name, kind in columns(spec.decode.schema_)}
    for name, kind in declared.items():
        found, wanted = there.get(name, {}).get("type"), _plain(kind)
        if isinstance(found, str) and wanted and found != wanted:
            yield _finding(
                spec,
                Kind.COLUMN_TYPE,
                f"column {name} is {found} in the table, but {kind} in decode.schema",
                "the driver refuses to start",
                "declare the type that the table has, or write to a new table",
            )
    for name, field in there.items():
        if not field["nullable"] and name not in declared and not name.startswith("_"):
            yield _finding(
                spec,
                Kind.COLUMN_NOT_NULL,
                f"column {name} of the table is NOT NULL, but decode.schema does not name it",
                "no batch could be committed",
                "declare the column, or ALTER TABLE ... ALTER COLUMN ... DROP NOT NULL",
            )


def _partitions(spec: StreamSpec, found: list[str]) -> Iterator[Finding]:
    wanted = [partition.name for partition in spec.table.partitions]
    if wanted != list(found):
        yield _finding(
            spec,
            Kind.TABLE_PARTITIONS,
            f"the table is partitioned by {found or 'nothing'}, the spec says "
            f"{wanted or 'nothing'}",
            "a table keeps the partitions that it was made with",
            "declare table.partition_by as the table has it, or write to a new table",
            level=Level.WARNING,
        )


def _properties(spec: StreamSpec, found: Mapping[str, str | None]) -> Iterator[Finding]:
    for key, value in sorted(spec.table.properties.items()):
        if found.get(key) != value:
            yield _finding(
                spec,
                Kind.TABLE_PROPERTY,
                f"property {key} is {found.get(key)!r} in the table, the spec says {value!r}",
                "properties of the spec count when the table is made",
                f"ALTER TABLE delta.`{spec.table.path}` SET TBLPROPERTIES ('{key}' = '{value}')",
                level=Level.WARNING,
            )
    if str(found.get("delta.appendOnly")).lower() == "true":
        yield _finding(
            spec,
            Kind.APPEND_ONLY,
            "the table is append-only (delta.appendOnly)",
            "a repair could not take wrong rows out of it",
            "unset it; it can be unset for the time of a repair, too",
            level=Level.WARNING,
        )
    yield from _retention(spec, found)


def _clustering(spec: StreamSpec, features: set[str]) -> Iterator[Finding]:
    """Delta asks for the feature, which CLUSTER BY NONE leaves on the table."""
    if spec.table.cluster_by and "clustering" not in features:
        columns = ", ".join(spec.table.cluster_by)
        yield _finding(
            spec,
            Kind.TABLE_CLUSTERING,
            f"the table is not clustered, the spec says {columns}",
            "cluster_by of the spec counts when the table is made",
            f"ALTER TABLE delta.`{spec.table.path}` CLUSTER BY ({columns}), or remove cluster_by",
            level=Level.WARNING,
        )
    if "clustering" in features and spec.maintenance.compaction.z_order:
        yield _finding(
            spec,
            Kind.Z_ORDER,
            "maintenance.compaction.z_order is set, but the table is made with CLUSTER BY",
            "OPTIMIZE refuses ZORDER BY for such a table, so no compaction would succeed",
            "remove z_order; the columns of CLUSTER BY are clustered by without it",
            level=Level.WARNING,
        )


def _retention(spec: StreamSpec, found: Mapping[str, str | None]) -> Iterator[Finding]:
    log = interval(found.get("delta.logRetentionDuration") or "") or DEFAULT_LOG_RETENTION
    deleted = found.get("delta.deletedFileRetentionDuration") or ""
    files = interval(deleted) or DEFAULT_FILE_RETENTION
    if log < files:
        yield _finding(
            spec,
            Kind.TABLE_RETENTION,
            f"the table keeps its log for {log}, but deleted files for {files}",
            "VACUUM LITE and RESTORE need the log entries of all files that are there",
            f"ALTER TABLE delta.`{spec.table.path}` SET TBLPROPERTIES "
            f"('delta.logRetentionDuration' = 'interval {files.days + 1} days')",
        )


def _secrets(
    spec: StreamSpec, found: Mapping[str, str | None], secrets: Mapping[str, str]
) -> Iterator[Finding]:
    """Whoever set it, and whenever: every reader of the table sees its properties."""
    for key, value in sorted(found.items()):
        for name in sorted(n for n, secret in secrets.items() if secret in (value or "")):
            yield Finding(
                Level.ERROR,
                Group.SECRETS,
                Kind.SECRET_IN_TABLE,
                f"the table's property {key} holds the value of {name}",
                "every reader of the table sees it, and its log keeps it",
                f"ALTER TABLE delta.`{spec.table.path}` UNSET TBLPROPERTIES ('{key}'), and change "
                "the secret: the log's older entries still hold it",
                spec.name,
                USER,
            )


def _plain(kind: str) -> str | None:
    """Delta's name of a SQL type; None for nested ones."""
    text = kind.lower().replace(" ", "")
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        return f"decimal({decimal[1] or 10},{decimal[2] or 0})"
    return _TYPES.get(text)


def _finding(
    spec: StreamSpec,
    kind: Kind,
    what: str,
    why: str,
    remedy: str,
    *,
    code: int = USER,
    level: Level = Level.ERROR,
) -> Finding:
    return Finding(level, Group.TABLE, kind, what, why, remedy, spec.name, code)
