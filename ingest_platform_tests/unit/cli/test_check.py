"""`ingest-platform check`, against the real broker and S3, and without them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.maintain.preflight.findings import Level
from ingest_platform.maintain.preflight.storage import check_storage
from ingest_platform.model.status import Status
from ingest_platform.spec import StorageEnvironment, load_spec
from ingest_platform_tests.topic_records import Record, as_records, produce


@pytest.fixture
def placed(deployment, kafka, topic, s3, monkeypatch):
    """A stream from a real topic to a real bucket; returns its spec's path."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    spec = deployment.declare("clicks")
    text = spec.read_text().replace(deployment.table("clicks"), f"s3a://{s3.bucket}/tables/clicks")
    spec.write_text(text.replace("topic: t", f"topic: {topic(3)}"))
    return spec


def findings(result) -> list[dict]:
    return json.loads(result.stdout)["findings"]


def errors(result) -> list[str]:
    return [f["what"] for f in findings(result) if f["level"] == "error"]


def test_all_is_well(run, placed, s3):
    result = run("check", "--json")
    assert errors(result) == []
    assert result.exit_code == 0
    groups = {f["group"] for f in findings(result)}
    assert groups == {"versions", "kafka", "storage", "paths", "secrets", "capacity", "alerts"}
    store = object_store(f"s3a://{s3.bucket}/tables", StorageEnvironment.from_env(s3.environment()))
    assert store.list("") == [], "probe objects are removed"


def test_people_see_groups_remedies_and_a_sum(run, placed):
    result = run("check", "clicks")
    assert result.stdout.splitlines()[0] == "versions"
    assert "3 partitions" in result.stdout
    assert "0 errors" in result.stdout
    quiet = run("check", "clicks", "--quiet")
    assert "ok  " not in quiet.stdout


def test_a_missing_topic(run, placed):
    placed.write_text(placed.read_text().replace("topic: t-", "topic: no-"))
    result = run("check", "clicks", "--json")
    assert result.exit_code == 3
    assert any("does not exist" in what for what in errors(result))


def test_a_topic_with_short_retention(run, placed, topic):
    name = topic(1, {"retention.ms": "3600000"})
    text = placed.read_text()
    start = text.index("topic: t-")
    placed.write_text(text.replace(text[start : text.index("}", start)], f"topic: {name}"))
    result = run("check", "clicks", "--json", "--quiet")
    assert result.exit_code == 0
    assert any("keeps records for 1 h" in f["what"] for f in findings(result))


def test_a_position_that_the_topic_does_not_have(run, placed, s3):
    """Fault 12: the status says where the stream was, the broker never got that far."""
    spec = load_spec(placed, {})
    store = object_store(spec.root, StorageEnvironment.from_env(s3.environment()))
    StatusStore(store).write(Status(stream="clicks", offsets={spec.source.topic: {"0": 7}}))
    result = run("check", "clicks", "--json")
    assert result.exit_code == 4
    assert any("was read up to 7, but ends at 0" in what for what in errors(result))


@pytest.mark.parametrize("bucket", ["no-such-bucket", "b-"])
def test_a_missing_bucket(run, placed, s3, bucket):
    placed.write_text(placed.read_text().replace(s3.bucket, bucket + "x"))
    result = run("check", "clicks", "--json")
    assert result.exit_code == 3
    assert any("bucket" in what for what in errors(result))


def test_a_wrong_secret_key_is_denied_and_not_shown(run, placed, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng-s3cret")
    result = run("check", "clicks", "--json")
    assert result.exit_code == 3
    assert "wr0ng-s3cret" not in result.output


def test_a_clock_that_is_off_is_told(placed, s3):
    spec = load_spec(placed, {})
    late = datetime.now(UTC) - timedelta(minutes=20)
    found = [f for f in check_storage(spec, s3.environment(), lambda: late) if "clock" in f.what]
    assert [f.level for f in found] == [Level.ERROR]


def test_no_broker_answers(run, deployment, monkeypatch, unused_port):
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{unused_port}")
    deployment.declare("clicks")
    result = run("check", "--json", "--timeout", "1")
    assert result.exit_code == 3
    assert any("Kafka does not answer" in what for what in errors(result))
    assert not (deployment.root / "tables").exists()


def test_a_broken_spec_is_a_finding_beside_the_others(run, deployment, monkeypatch, unused_port):
    """As a CI step, one run tells everything."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{unused_port}")
    deployment.declare("clicks")
    deployment.declare("broken", extra="  nonsense: 1\n")
    result = run("check", "--json", "--timeout", "1")
    found = findings(result)
    assert found[0]["group"] == "spec"
    assert "nonsense" in found[0]["what"]
    assert any(f["stream"] == "clicks" for f in found)


@pytest.mark.slow  # needs Java and the jars
def test_a_secret_in_a_spec_is_found_and_not_shown(run, deployment):
    deployment.declare("clicks", extra='  description: "password=hunter2hunter2"\n')
    result = run("check", "clicks", "--json")
    assert result.exit_code == 2
    assert "secret" in errors(result)[0]
    assert "hunter2" not in result.output


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read_from(placed, name: str) -> None:
    """Let the spec name another topic."""
    text = placed.read_text()
    start = text.index("topic: t-")
    placed.write_text(text.replace(text[start : text.index("}", start)], f"topic: {name}"))


def test_a_transactional_topic_needs_gaps_counted(run, placed, kafka, topic):
    """Its control records take offsets that no consumer ever gets."""
    name = topic(1)
    values = as_records([b"1", b"2"])
    produce(kafka.bootstrap_servers, name, values, transaction="t1")
    read_from(placed, name)
    result = run("check", "clicks", "--json")
    assert result.exit_code == 2
    assert any("offsets without a record" in what for what in errors(result))


def test_large_records_small_retention_and_a_wrong_clock(run, placed, s3, kafka, topic):
    """One topic with all that `check` warns of; at 10 records/s of 100 bytes, 10 MB last 2.78 h."""
    name = topic(1, {"max.message.bytes": str(400 << 20), "retention.bytes": "10000000"})
    later = int((datetime.now(UTC) + timedelta(minutes=30)).timestamp() * 1000)
    produce(kafka.bootstrap_servers, name, [Record(b"x" * 100, millis=later)])
    read_from(placed, name)
    spec = load_spec(placed, {})
    store = object_store(spec.root, StorageEnvironment.from_env(s3.environment()))
    StatusStore(store).write(Status(stream="clicks", input_rows_per_second=10.0))
    result = run("check", "clicks", "--json", "--quiet")
    assert result.exit_code == 0
    told = " ".join(f["what"] for f in findings(result))
    assert "takes records of up to 419.4 MB" in told
    assert "at 10 records/s of 100 bytes lasts 2.78 h" in told
    assert "s ahead of this machine's clock" in told
