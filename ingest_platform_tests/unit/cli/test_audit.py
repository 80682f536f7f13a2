"""`ingest-platform audit`, on real tables."""

from __future__ import annotations

import json

import pytest
from deltalake import DeltaTable

from ingest_platform_tests.ledger_tables import append, ledger, rows_of, write_batches


@pytest.fixture
def clicks(deployment):
    """A stream with a table of two sound batches."""
    deployment.declare("clicks")
    write_batches(deployment.table("clicks"), [(0, 0, 5), (1, 0, 3)], [(0, 5, 9)])
    return deployment


def test_a_sound_stream_is_complete(run, clicks):
    result = run("audit", "clicks")
    assert result.exit_code == 0
    assert "clicks: complete, versions 0 to 1" in result.stdout
    assert "12 records read = 12 written + 0 quarantined + 0 skipped" in result.stdout


def test_a_gap_is_shown_with_its_range_and_exit_code_4(run, clicks):
    append(clicks.table("clicks"), rows_of((0, 11, 12)), ledger((0, 11, 12), batch=2))
    result = run("audit", "clicks")
    assert result.exit_code == 4
    assert "1 errors" in result.stdout
    assert "2 offsets of t-0, [9, 11), are in no commit" in result.stdout


def test_json_has_its_documented_shape(run, clicks):
    append(clicks.table("clicks"), rows_of((0, 11, 12)), ledger((0, 11, 12), batch=2))
    result = run("audit", "clicks", "--json", "--data")
    assert result.exit_code == 4
    report = json.loads(result.stdout)
    assert report["findings"] == [
        {
            "kind": "gap",
            "level": "error",
            "what": report["findings"][0]["what"],
            "topic": "t",
            "partition": 0,
            "start": 9,
            "until": 11,
            "versions": [1, 2],
        }
    ]
    assert report["proven"][0] == {
        "topic": "t",
        "partition": 0,
        "start": 0,
        "until": 9,
        "first_version": 0,
        "last_version": 1,
        "incarnation": 0,
    }
    assert set(report) == {
        "name",
        "table",
        "clean",
        "first_version",
        "last_version",
        "findings",
        "proven",
        "unproved",
        "totals",
        "sessions",
        "incarnations",
        "accepted",
        "data",
        "lag",
    }
    assert (report["clean"], report["name"]) == (False, "clicks")
    assert report["totals"]["batches"] == 3
    assert report["data"]["missing"] == 0


def test_data_finds_what_the_log_cannot_show(run, clicks):
    """Rows deleted by hand: the log only knows that something happened."""
    DeltaTable(clicks.table("clicks")).delete("_kafka_offset = 2")
    assert "no_ledger" in run("audit", "clicks").stdout
    result = run("audit", "clicks", "--data")
    assert result.exit_code == 4
    assert "1 offsets of t-1, [2, 3), are in neither table nor quarantine" in result.stdout


def test_a_table_can_be_audited_by_its_path_alone(run, clicks):
    path = clicks.table("clicks")
    assert run("audit", path).exit_code == 0
    result = run("audit", path, "--topic")
    assert result.exit_code == 2
    assert "--topic needs a stream's spec" in result.stderr


def test_a_stream_without_a_table_is_told_so(run, deployment):
    deployment.declare("fresh")
    result = run("audit", "fresh")
    assert result.exit_code == 2
    assert "there is no Delta table" in result.stderr


def test_topic_compares_with_what_was_produced(run, deployment, kafka, topic, monkeypatch):
    """The demo's last question: was everything that was produced ingested?"""
    from confluent_kafka import Producer

    name = topic(partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for number in range(10):
        producer.produce(name, b"x", partition=number % 2)
    assert producer.flush(20) == 0
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    spec = deployment.declare("clicks")
    spec.write_text(spec.read_text().replace("topic: t", f"topic: {name}"))
    write_batches(deployment.table("clicks"), [(0, 0, 5), (1, 0, 3)], topic=name)

    result = run("audit", "clicks", "--topic", "--data", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["lag"] == {f"{name}-0": 0, f"{name}-1": 2}

    write_batches(deployment.table("other"), [(0, 2, 6), (1, 0, 3)], topic=name)
    spec.write_text(spec.read_text().replace("tables/clicks", "tables/other"))
    result = run("audit", "clicks", "--topic", "--json")
    assert result.exit_code == 4
    kinds = [f["kind"] for f in json.loads(result.stdout)["findings"]]
    assert kinds == ["topic_recreated", "never_read"]
