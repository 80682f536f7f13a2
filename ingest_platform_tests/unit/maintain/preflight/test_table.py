"""Does the table fit the spec? Asked of real tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from ingest_platform.maintain.preflight.findings import Finding, exit_code
from ingest_platform.maintain.preflight.kinds import Kind, Level
from ingest_platform.maintain.preflight.table import check_table
from ingest_platform.spec import CompactionSpec, MaintenanceSpec, StreamSpec
from ingest_platform_tests.factories import make_spec
from ingest_platform_tests.unit.maintain.preflight import found


def spec_of(path: Path, **table: object) -> StreamSpec:
    return make_spec(table={"path": str(path), **table}, decode={"schema": "id BIGINT, n STRING"})


def make_table(path: Path, **options: object) -> None:
    columns = {"id": pa.array([1], pa.int64()), "n": ["a"]}
    write_deltalake(str(path), pa.table(columns), **options)


def edit_log(path: Path, kind: str, **changes: object) -> None:
    """Rewrite one action of a table's first commit, as another writer would have made it."""
    log = path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get(kind, {}).update(changes)
    log.write_text("\n".join(map(json.dumps, actions)))


def problems(spec: StreamSpec, environ: Mapping[str, str] | None = None) -> list[Finding]:
    return found.problems(check_table(spec, environ or {}))


def test_a_table_as_the_spec_says(tmp_path):
    make_table(tmp_path / "t")
    assert problems(spec_of(tmp_path / "t")) == []
    assert problems(spec_of(tmp_path / "none")) == []


@pytest.mark.parametrize(
    ("feature", "why"),
    [
        ("fromTheFuture", "does not know it"),
        ("coordinatedCommits-preview", "outside of the platform's"),
    ],
)
def test_a_feature_that_the_installed_delta_cannot_write(tmp_path, feature, why):
    make_table(tmp_path / "t")
    edit_log(
        tmp_path / "t", "protocol", minReaderVersion=3, minWriterVersion=7, readerFeatures=[],
        writerFeatures=["appendOnly", feature],
    )  # fmt: skip
    (finding,) = problems(spec_of(tmp_path / "t"))
    assert finding.kind is Kind.TABLE_FEATURE
    assert feature in finding.what
    assert why in finding.why
    assert exit_code([finding]) == 3


def test_a_protocol_of_a_later_delta(tmp_path):
    make_table(tmp_path / "t")
    edit_log(tmp_path / "t", "protocol", minReaderVersion=1, minWriterVersion=8)
    (finding,) = problems(spec_of(tmp_path / "t"))
    assert finding.kind is Kind.TABLE_PROTOCOL
    assert "writer 8" in finding.what
    assert finding.exit_code == 3


def test_columns_that_the_driver_would_refuse(tmp_path):
    schema = pa.schema([pa.field("id", pa.string()), pa.field("must", pa.int32(), nullable=False)])
    table = pa.table({"id": ["1"], "must": pa.array([1], pa.int32())}, schema=schema)
    write_deltalake(str(tmp_path / "t"), table)
    bad = problems(spec_of(tmp_path / "t"))
    assert [(f.kind, f.what) for f in bad] == [
        (Kind.COLUMN_TYPE, "column id is string in the table, but BIGINT in decode.schema"),
        (
            Kind.COLUMN_NOT_NULL,
            "column must of the table is NOT NULL, but decode.schema does not name it",
        ),
    ]
    assert exit_code(bad) == 2


def test_partitions_properties_and_retention_of_the_table_itself(tmp_path):
    """The spec's properties count only when the table is made; the table's own count always."""
    configuration = {
        "delta.appendOnly": "true",
        "delta.logRetentionDuration": "interval 1 days",
        "delta.deletedFileRetentionDuration": "interval 7 days",
    }
    make_table(tmp_path / "t", partition_by=["n"], configuration=configuration)
    spec = spec_of(tmp_path / "t", properties={"delta.logRetentionDuration": "interval 30 days"})
    assert {f.kind: (f.what, f.level) for f in problems(spec)} == {
        Kind.TABLE_PARTITIONS: (
            "the table is partitioned by ['n'], the spec says nothing",
            Level.WARNING,
        ),
        Kind.TABLE_PROPERTY: (
            "property delta.logRetentionDuration is 'interval 1 days' in the table, the spec says "
            "'interval 30 days'",
            Level.WARNING,
        ),
        Kind.APPEND_ONLY: ("the table is append-only (delta.appendOnly)", Level.WARNING),
        Kind.TABLE_RETENTION: (
            "the table keeps its log for 1 day, 0:00:00, but deleted files for 7 days, 0:00:00",
            Level.ERROR,
        ),
    }


def test_z_order_of_a_table_with_cluster_by(tmp_path):
    make_table(tmp_path / "t")
    edit_log(
        tmp_path / "t", "protocol", minReaderVersion=1, minWriterVersion=7,
        writerFeatures=["appendOnly", "clustering", "domainMetadata"],
    )  # fmt: skip
    spec = spec_of(tmp_path / "t")
    assert problems(spec) == []
    ordered = spec.model_copy(
        update={"maintenance": MaintenanceSpec(compaction=CompactionSpec(z_order=("n",)))}
    )
    (finding,) = problems(ordered)
    assert (finding.kind, finding.level) == (Kind.Z_ORDER, Level.WARNING)
    assert "remove z_order" in finding.remedy


def test_cluster_by_of_a_table_that_is_not_clustered(tmp_path):
    make_table(tmp_path / "t")
    (finding,) = problems(spec_of(tmp_path / "t", cluster_by=["n", "id"]))
    assert (finding.kind, finding.level) == (Kind.TABLE_CLUSTERING, Level.WARNING)
    assert f"ALTER TABLE delta.`{tmp_path / 't'}` CLUSTER BY (n, id)" in finding.remedy


def test_a_secret_among_the_tables_properties(tmp_path):
    """Someone set it with ALTER TABLE: the spec does not know, every reader of the table does."""
    secret = "s3ntinel-s3cret"
    make_table(tmp_path / "t")
    edit_log(tmp_path / "t", "metaData", configuration={"app.note": f"key={secret}"})
    (finding,) = problems(spec_of(tmp_path / "t"), {"AWS_SECRET_ACCESS_KEY": secret})
    assert finding.kind is Kind.SECRET_IN_TABLE
    assert "property app.note holds the value of AWS_SECRET_ACCESS_KEY" in finding.what
    assert secret not in str(finding)


def test_a_log_with_a_hole(tmp_path):
    """Fault 24, before a driver meets it."""
    for _ in range(3):
        make_table(tmp_path / "t", mode="append")
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").unlink()
    (finding,) = problems(spec_of(tmp_path / "t"))
    assert finding.kind is Kind.TABLE_LOG
    assert finding.exit_code == 4
