"""`ingest-platform check`, against the real broker and S3, and without them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.maintain.preflight.kinds import Kind
from ingest_platform.model.status import Status
from ingest_platform.spec import StorageEnvironment, load_spec
from ingest_platform_tests.conftest import KAFKA_LOGIN
from ingest_platform_tests.ledger_tables import write_batches
from ingest_platform_tests.topic_records import (
    Record,
    as_records,
    delete_records,
    produce,
    recreate_topic,
)


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


def kinds(result) -> set[str]:
    """Kinds of the errors, and of the warnings about the topic."""
    found = findings(result)
    return {f["kind"] for f in found if f["level"] == "error" or f["group"] == "kafka"} - {Kind.OK}


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
    assert kinds(result) == {Kind.TOPIC_MISSING}
    assert any("does not exist" in what for what in errors(result))


def test_a_login_that_the_broker_refuses(run, placed, kafka, monkeypatch):
    """Kafka's own clients only time out; the reason is in their log."""
    user, password = KAFKA_LOGIN
    login = {"SECURITY_PROTOCOL": "SASL_PLAINTEXT", "SASL_MECHANISM": "PLAIN"}
    login |= {"BOOTSTRAP_SERVERS": kafka.login_servers, "SASL_USERNAME": user}
    for name, value in login.items():
        monkeypatch.setenv(f"KAFKA_{name}", value)
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", password)
    assert kinds(run("check", "clicks", "--json")) == set()
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", "wr0ng-s3cret")
    result = run("check", "clicks", "--json", "--timeout", "5")
    assert result.exit_code == 3
    assert kinds(result) == {Kind.KAFKA_DENIED}
    assert "wr0ng-s3cret" not in result.output


def test_brokers_that_want_a_login(run, placed, kafka, monkeypatch):
    """Without one the broker just hangs up: the remedy names the security settings."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.login_servers)
    result = run("check", "clicks", "--json", "--timeout", "2")
    assert kinds(result) <= {Kind.KAFKA_DENIED, Kind.KAFKA_UNREACHABLE}
    remedies = [f["remedy"] for f in findings(result) if f["group"] == "kafka"]
    assert "security" in remedies[0]


def test_a_topic_with_short_retention(run, placed, topic):
    read_from(placed, topic(1, {"retention.ms": "3600000"}))
    result = run("check", "clicks", "--json", "--quiet")
    assert result.exit_code == 0
    assert kinds(result) == {Kind.RETENTION_TIME}
    assert any("keeps records for 1 h" in f["what"] for f in findings(result))


def test_a_compacted_topic(run, placed, topic):
    read_from(placed, topic(1, {"cleanup.policy": "compact"}))
    result = run("check", "clicks", "--json")
    assert result.exit_code == 2
    assert kinds(result) == {Kind.COMPACTED}


@pytest.fixture
def half_read(deployment, kafka, topic, monkeypatch):
    """A stream on local paths that has read 10 of its topic's 20 records; spec and topic."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    name, spec = topic(1), deployment.declare("clicks")
    produce(kafka.bootstrap_servers, name, as_records([b"{}"] * 20))
    spec.write_text(spec.read_text().replace("topic: t", f"topic: {name}"))
    write_batches(deployment.table("clicks"), [(0, 0, 10)], topic=name)
    state = deployment.root / "tables" / "_ingest" / "streams" / "clicks" / "checkpoint"
    written = {
        "metadata": '{"id": "a"}',
        "sources/0/0": f'\0v1\n{{"{name}":{{"0":0}}}}',
        "offsets/0": f'v1\n{{}}\n{{"{name}":{{"0":10}}}}',
        "commits/0": "v1\n{}",
    }
    for key, text in written.items():
        (state / key).parent.mkdir(parents=True, exist_ok=True)
        (state / key).write_text(text)
    return name, state


def test_where_the_checkpoint_goes_on(run, half_read, kafka):
    """Faults 11 and 12, before a driver meets them: no status document is needed to tell."""
    name, _ = half_read
    assert kinds(run("check", "clicks", "--json")) == set()
    delete_records(kafka.bootstrap_servers, name, {0: 12})
    result = run("check", "clicks", "--json")
    assert result.exit_code == 4
    assert kinds(result) == {Kind.OFFSETS_DELETED}
    assert "2 records were deleted before they were read" in result.stdout
    recreate_topic(kafka.bootstrap_servers, name, 1)
    result = run("check", "clicks", "--json")
    assert result.exit_code == 4
    assert kinds(result) == {Kind.TOPIC_RECREATED}


@pytest.mark.parametrize(
    ("key", "text", "what"),
    [
        ("offsets/0", "v1\n{}", "is truncated"),
        ("metadata", '{"id": "b"}', "is of session b, but the table's newest is a"),
        ("commits/1", "v1\n{}", "offsets/1 is missing"),
    ],
)
def test_a_checkpoint_that_a_driver_would_refuse(run, half_read, key, text, what):
    """Faults 22 and 23."""
    (half_read[1] / key).write_text(text)
    result = run("check", "clicks", "--json")
    assert result.exit_code == 4
    assert kinds(result) == {Kind.CHECKPOINT}
    assert any(what in error for error in errors(result))


def test_a_position_that_only_the_status_knows(run, placed, s3):
    """Nothing else is left of the stream, and the broker never got that far."""
    spec = load_spec(placed, {})
    store = object_store(spec.root, StorageEnvironment.from_env(s3.environment()))
    StatusStore(store).write(Status(stream="clicks", offsets={spec.source.topic: {"0": 7}}))
    result = run("check", "clicks", "--json")
    assert result.exit_code == 4
    assert kinds(result) == {Kind.TOPIC_RECREATED}
    assert any("was read up to 7, but ends at 0" in what for what in errors(result))


@pytest.mark.parametrize("bucket", ["no-such-bucket", "b-"])
def test_a_missing_bucket(run, placed, s3, bucket):
    placed.write_text(placed.read_text().replace(s3.bucket, bucket + "x"))
    result = run("check", "clicks", "--json")
    assert result.exit_code == 3
    assert kinds(result) == {Kind.STORAGE_DENIED}
    assert any("bucket" in what for what in errors(result))


def test_a_wrong_secret_key_is_denied_and_not_shown(run, placed, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng-s3cret")
    result = run("check", "clicks", "--json")
    assert result.exit_code == 3
    assert "wr0ng-s3cret" not in result.output


def test_no_broker_answers(run, deployment, monkeypatch, unused_port):
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{unused_port}")
    deployment.declare("clicks")
    result = run("check", "--json", "--timeout", "1")
    assert result.exit_code == 3
    assert kinds(result) == {Kind.KAFKA_UNREACHABLE}
    assert any("Kafka does not answer" in what for what in errors(result))
    assert not (deployment.root / "tables").exists()


def test_a_broken_spec_is_a_finding_beside_the_others(run, deployment, monkeypatch, unused_port):
    """As a CI step, one run tells everything."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{unused_port}")
    deployment.declare("clicks")
    deployment.declare("broken", extra="  nonsense: 1\n")
    result = run("check", "--json", "--timeout", "1")
    found = findings(result)
    assert (found[0]["group"], found[0]["kind"]) == ("spec", Kind.SPEC)
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
    assert kinds(result) == {Kind.TRANSACTIONS}
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
    assert kinds(result) == {Kind.RECORD_SIZE, Kind.RETENTION_BYTES, Kind.RECORD_CLOCK}
    told = " ".join(f["what"] for f in findings(result))
    assert "takes records of up to 419.4 MB" in told
    assert "at 10 records/s of 100 bytes lasts 2.78 h" in told
    assert "s ahead of this machine's clock" in told
