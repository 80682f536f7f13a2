"""`ingest-platform repair` and `quarantine`, as far as no broker and no JVM is needed."""

from __future__ import annotations

import json

import pytest
from deltalake import write_deltalake

from ingest_platform.spec import load_spec
from ingest_platform_tests.ledger_tables import quarantine_rows, write_batches


@pytest.fixture
def spec(deployment):
    return load_spec(deployment.declare("clicks"), {})


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--since", "yesterday"), "'yesterday' is not a time with zone"),
        (("--since", "2026-01-31T18:00:00"), "is not a time with zone"),
        (("--since", "2026-01-31T18:00:00Z", "--to-version", "3"), "both a time and a version"),
    ],
)
def test_options_that_say_nothing_clear(run, spec, options, what):
    result = run("repair", "plan", "clicks", *options)
    assert result.exit_code == 2
    assert what in result.stderr


def test_a_stream_without_a_table(run, spec):
    result = run("repair", "plan", "clicks")
    assert result.exit_code == 2
    assert "there is no Delta table" in result.stderr


def test_brokers_that_do_not_answer(run, spec, monkeypatch):
    """Without them nobody knows what can be read again; nothing is begun."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    monkeypatch.setattr("ingest_platform.maintain.topic_bounds._PATIENCE_SECONDS", 0.1)
    write_batches(spec.table.path, [(0, 0, 5)])
    result = run("repair", "apply", "clicks", "--yes")
    assert result.exit_code == 3
    assert "Kafka does not answer" in result.stderr


def test_nothing_to_abandon(run, spec):
    result = run("repair", "abandon", "clicks")
    assert (result.exit_code, result.stdout) == (0, "clicks: no repair is open\n")


def test_help_names_every_symptom_and_has_examples(run):
    """An operator at night reads this first."""
    text = run("repair", "--help").stdout
    for word in ("lost, torn", "--since TIME", "--accept-gap", "--topic-recreated", "Examples:"):
        assert word in text
    for command in ("plan", "apply", "abandon"):
        assert "ingest-platform repair" in run("repair", command, "--help").stdout


def test_rejected_records_by_reason_with_samples(run, spec):
    """Values are cut, and no control character of a record reaches the terminal."""
    rows = quarantine_rows([(0, n) for n in range(5)])
    at = rows.schema.get_field_index("detail")
    rows = rows.set_column(at, "detail", [[f"id is no bigint: \x1b[31m{n}" for n in range(5)]])
    write_deltalake(spec.table.quarantine, rows)
    result = run("quarantine", "list", "clicks", "--json", "--samples", "2")
    (group,) = json.loads(result.stdout)["groups"]
    assert (group["reason"], group["detail"]) == ("malformed", "id is no bigint")
    assert (group["records"], len(group["samples"])) == (5, 2)
    assert group["samples"][0]["place"] == "t-0@0"
    shown = run("quarantine", "list", "clicks").stdout
    assert "malformed" in shown
    assert "\x1b" not in shown
    assert "nothing was rejected" in run("quarantine", "list", "clicks", "--reason", "x").stdout
