"""`ingest-platform compact` and `vacuum`, as far as they need no Spark."""

from __future__ import annotations

import json

import pytest

from ingest_platform_tests.lake_tables import LakeTable

SETTLED = "  maintenance: {compaction: {settle: 0s, min_files: 2}}\n"


@pytest.fixture
def clicks(deployment):
    """A stream whose table has five small files in each of two partitions."""
    deployment.declare("clicks", SETTLED)
    table = LakeTable(deployment.table("clicks"))
    for n in range(5):
        table.append([n, n + 10], country=["nl", "it's"])
    return deployment


def test_a_dry_run_says_what_would_be_compacted(run, clicks):
    result = run("compact", "clicks", "--dry-run", "--json")
    assert result.exit_code == 0, result.stderr
    [table] = json.loads(result.stdout)["tables"]
    assert table["name"] == "clicks"
    assert (table["files_before"], table["files_after"]) == (10, 10)
    assert table["partitions_planned"] == 2
    assert "to compact: 10 files" in table["done"]
    assert LakeTable(clicks.table("clicks")).files() == 10


def test_partitions_that_are_left_alone_are_counted_by_reason(run, clicks):
    clicks.declare("clicks", "  maintenance: {compaction: {settle: 1h, min_files: 2}}\n")
    result = run("compact", "clicks")
    assert result.exit_code == 0
    assert "nothing to compact" in result.stdout
    assert "left alone: is still being written" in " ".join(result.stdout.split())


def test_a_young_table_needs_no_vacuum(run, clicks):
    result = run("vacuum", "clicks")
    assert result.exit_code == 0
    assert "nothing to vacuum: the table is younger than its retention" in result.stdout


def test_an_unsafe_retention_is_refused_before_anything_starts(run, clicks):
    """Fault 25: running readers would lose their files."""
    result = run("vacuum", "clicks", "--keep", "1h")
    assert result.exit_code == 2
    assert "the table promises 7 days" in result.stderr
    assert "--unsafe-retention" in result.stderr
    assert run("vacuum", "clicks", "--keep", "soon").exit_code == 2


def test_one_broken_table_does_not_keep_the_other_from_its_turn(run, clicks):
    """Fault 24, with the error's exit code at the end."""
    clicks.declare("damaged", SETTLED)
    damaged = LakeTable(clicks.table("damaged"))
    for n in range(3):
        damaged.append([n])
    (clicks.root / "tables" / "damaged" / "_delta_log" / f"{1:020}.json").unlink()
    result = run("compact", "damaged", "clicks", "--dry-run", "--json")
    assert result.exit_code == 4
    first, second = json.loads(result.stdout)["tables"]
    assert first["error"]["kind"] == "LogDamagedError"
    assert "backup" in first["error"]["remedy"]
    assert second["partitions_planned"] == 2


def test_a_stream_without_a_table_is_no_error(run, deployment):
    deployment.declare("orders")
    for command in ("compact", "vacuum"):
        result = run(command, "orders", "--json")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["tables"][0]["done"] == "there is no table yet"


def test_the_quarantine_table_is_maintained_with_its_table(run, clicks):
    """Each batch with a bad record adds a file to it."""
    quarantine = LakeTable(clicks.table("clicks_quarantine"))
    for n in range(4):
        quarantine.append([n])
    [table] = json.loads(run("compact", "clicks", "--dry-run", "--json").stdout)["tables"]
    assert table["quarantine_files_before"] == 4
    assert (clicks.root / "tables" / "clicks_quarantine" / "_delta_log").is_dir()
    (clicks.root / "tables" / "clicks_quarantine" / "_delta_log" / f"{1:020}.json").unlink()
    assert run("compact", "clicks", "--dry-run").exit_code == 4
