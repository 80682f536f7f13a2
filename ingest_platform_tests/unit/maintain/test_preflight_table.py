"""Does the table fit the spec? Asked of real tables."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from ingest_platform.maintain.preflight.executors import check_executors
from ingest_platform.maintain.preflight.findings import Finding, Level, exit_code
from ingest_platform.maintain.preflight.table import check_table
from ingest_platform.spec import StreamSpec
from ingest_platform_tests.factories import make_spec


def spec_of(path: Path, **table: object) -> StreamSpec:
    return make_spec(table={"path": str(path), **table}, decode={"schema": "id BIGINT, n STRING"})


def make_table(path: Path, **options: object) -> None:
    columns = {"id": pa.array([1], pa.int64()), "n": ["a"]}
    write_deltalake(str(path), pa.table(columns), **options)


def edit_protocol(path: Path, **changes: object) -> None:
    """Rewrite the protocol of a table's first commit."""
    log = path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get("protocol", {}).update(changes)
    log.write_text("\n".join(map(json.dumps, actions)))


def problems(spec: StreamSpec) -> list[Finding]:
    return [f for f in check_table(spec, {}) if f.level is not Level.OK]


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
    edit_protocol(
        tmp_path / "t", minReaderVersion=3, minWriterVersion=7, readerFeatures=[],
        writerFeatures=["appendOnly", feature],
    )  # fmt: skip
    (finding,) = problems(spec_of(tmp_path / "t"))
    assert feature in finding.what
    assert why in finding.why
    assert exit_code([finding]) == 3


def test_columns_that_the_driver_would_refuse(tmp_path):
    schema = pa.schema([pa.field("id", pa.string()), pa.field("must", pa.int32(), nullable=False)])
    table = pa.table({"id": ["1"], "must": pa.array([1], pa.int32())}, schema=schema)
    write_deltalake(str(tmp_path / "t"), table)
    found = problems(spec_of(tmp_path / "t"))
    assert [f.what for f in found] == [
        "column id is string in the table, but BIGINT in decode.schema",
        "column must of the table is NOT NULL, but decode.schema does not name it",
    ]
    assert exit_code(found) == 2


def test_partitions_properties_and_retention_of_the_table_itself(tmp_path):
    """The spec's properties count only when the table is made; the table's own count always."""
    configuration = {
        "delta.appendOnly": "true",
        "delta.logRetentionDuration": "interval 1 days",
        "delta.deletedFileRetentionDuration": "interval 7 days",
    }
    make_table(tmp_path / "t", partition_by=["n"], configuration=configuration)
    spec = spec_of(tmp_path / "t", properties={"delta.logRetentionDuration": "interval 30 days"})
    found = {f.what: f.level for f in problems(spec)}
    assert found == {
        "the table is partitioned by ['n'], the spec says nothing": Level.WARNING,
        "property delta.logRetentionDuration is 'interval 1 days' in the table, the spec says "
        "'interval 30 days'": Level.WARNING,
        "the table is append-only (delta.appendOnly)": Level.WARNING,
        "the table keeps its log for 1 day, 0:00:00, but deleted files for 7 days, 0:00:00": (
            Level.ERROR
        ),
    }


def test_a_log_with_a_hole(tmp_path):
    """Fault 24, before a driver meets it."""
    for _ in range(3):
        make_table(tmp_path / "t", mode="append")
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").unlink()
    (finding,) = problems(spec_of(tmp_path / "t"))
    assert finding.level is Level.ERROR


def test_another_python_on_the_executors(tmp_path):
    other = tmp_path / "python3.9"
    other.write_text("#!/bin/sh\necho 3.9\n")
    other.chmod(0o755)
    spec = make_spec(spark={"conf": {"spark.pyspark.python": str(other)}})
    (finding,) = check_executors(spec, {}, (3, 11))
    assert finding.what == f"executors use Python 3.9 ({other}), the driver 3.11"
    assert [f.level for f in check_executors(spec, {}, (3, 9))] == [Level.OK]


def test_executors_whose_python_nobody_named():
    spec = make_spec(spark={"master": "spark://host:7077"})
    (finding,) = check_executors(spec, {}, (3, 11))
    assert finding.level is Level.WARNING
    (finding,) = check_executors(spec, {"PYSPARK_PYTHON": "/no/such/python"}, (3, 11))
    assert "cannot be run here" in finding.what
