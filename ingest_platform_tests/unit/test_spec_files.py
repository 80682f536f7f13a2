"""From a file to a spec: templates, secrets, and messages that show where and how to mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ingest_platform.errors import SecretInSpecError, SpecError
from ingest_platform.spec import KafkaEnvironment, StorageEnvironment, load_spec, load_specs
from ingest_platform.spec.files import COMPONENT_TYPE, parse_attributes

SECRET = "hunter2-sentinel"

ATTRIBUTES: dict[str, Any] = {
    "name": "clicks",
    "source": {"topic": "clicks"},
    "decode": {"schema": "id BIGINT"},
    "table": {"path": "/lake/clicks"},
}


def attributes(**changes: Any) -> dict[str, Any]:
    sections = {k: {**ATTRIBUTES.get(k, {}), **v} for k, v in changes.items()}
    return {**ATTRIBUTES, **sections}


def write(folder: Path, *documents: dict[str, Any]) -> Path:
    file = folder / "defs.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return file


def stream(**changes: Any) -> dict[str, Any]:
    return {"type": COMPONENT_TYPE, "attributes": {**ATTRIBUTES, **changes}}


def test_folder_or_file(tmp_path: Path) -> None:
    """`stream run defs/clicks` and `stream run defs/clicks/defs.yaml` are the same."""
    file = write(tmp_path, stream())
    assert load_spec(tmp_path, {}) == load_spec(file, {})


def test_other_components_are_passed_over(tmp_path: Path) -> None:
    """A `defs.yaml` may declare other Dagster components beside the stream."""
    file = write(tmp_path, {"type": "dagster.X", "attributes": {"a": 1}}, stream())
    assert [spec.name for spec in load_specs(file, {})] == ["clicks"]


def test_one_of_several(tmp_path: Path) -> None:
    other = stream(name="orders", table={"path": "/lake/orders"})
    file = write(tmp_path, stream(), other)
    assert load_spec(file, {}, "orders").name == "orders"
    with pytest.raises(SpecError, match="2 streams found"):
        load_spec(file, {})


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"", "0 streams found"),
        (b"a: [", "not valid YAML"),
        (b"\xff\xfe", "not valid YAML"),
        (b"just text", "0 streams found"),
        (b"- a\n- b", "0 streams found"),
        (f"type: {COMPONENT_TYPE}".encode(), "attributes: "),
        (f"type: {COMPONENT_TYPE}\nattributes: [1]".encode(), "attributes: "),
        (b"!!python/object/apply:os.system ['echo']", "not valid YAML"),
    ],
)
def test_files_that_are_no_spec(tmp_path: Path, content: bytes, finding: str) -> None:
    """Whatever is in the file, the message names the file and no code of it is run."""
    file = tmp_path / "defs.yaml"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=finding) as error:
        load_spec(file, {})
    assert str(file) in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot read the spec") as error:
        load_spec(tmp_path / "no.yaml", {})
    assert "no.yaml" in str(error.value)


def test_schema_file_is_beside_the_spec(tmp_path: Path) -> None:
    """The folder of one stream can be moved and shared as a whole."""
    decode = {"schema": None, "schema_file": "order.json"}
    file = write(tmp_path, stream(decode=decode))
    assert load_spec(file, {}).decode.schema_file == str(tmp_path / "order.json")


def test_every_broken_rule_is_named_at_once() -> None:
    """One message per attempt would make ten attempts of it."""
    wrong = attributes(source={"topic": "a b"}, table={"path": "lake"})
    with pytest.raises(SpecError) as error:
        parse_attributes(wrong, {}, where="x.yaml")
    assert "source.topic: " in error.value.what
    assert "table.path: " in error.value.what
    assert error.value.where == "x.yaml"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ env.BUCKET }}", "lake"),
        ("s3a://{{ env.BUCKET }}/x", "s3a://lake/x"),
        ("{{ env('BUCKET') }}", "lake"),
        ("{{ env('OTHER', 'default') }}", "default"),
        ("{{ env.HTML }}", "<a & b>"),
    ],
)
def test_templates(text: str, value: str) -> None:
    """The same syntax as in Dagster's own YAML, with nothing escaped."""
    source = {"bootstrap_servers": text}
    environ = {"BUCKET": "lake", "HTML": "<a & b>"}
    spec = parse_attributes(attributes(source=source), environ, where="x")
    assert spec.source.bootstrap_servers == value


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("{{ env.NOT_SET }}", "environment variable NOT_SET is not set"),
        ("{{ env('NOT_SET') }}", "environment variable NOT_SET is not set"),
        ("{{ nothing }}", "template cannot be rendered"),
        ("{{ env.X", "template cannot be rendered"),
        ("{{ 1 / 0 }}", "template cannot be rendered"),
        ("{{ ''.__class__.__mro__ }}", "template cannot be rendered"),
        ("{{ env.__class__.__init__.__globals__ }}", "template cannot be rendered"),
    ],
)
def test_templates_that_fail(text: str, finding: str) -> None:
    """Specs come from pull requests and are checked by machines: they must not run code there."""
    source = {"bootstrap_servers": text}
    with pytest.raises(SpecError, match=finding) as error:
        parse_attributes(attributes(source=source), {}, where="x")
    assert "source.bootstrap_servers" in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"source": {"options": {"kafka.sasl.jaas.config": SECRET}}},
        {"source": {"options": {"kafka.ssl.key.password": SECRET}}},
        {"source": {"bootstrap_servers": f"http://user:{SECRET}@host:9092"}},
        {"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": SECRET}}},
        {"spark": {"conf": {"spark.hadoop.fs.s3a.access.key": SECRET}}},
        {"spark": {"conf": {"x": f"org.X required password={SECRET};"}}},
        {"table": {"path": f"s3a://key:{SECRET}@lake/clicks"}},
        {"source": {"options": {"kafka.sasl.jaas.config": f"{{{{ '{SECRET}' }}}}"}}},
        {"source": {"options": {"kafka.ssl.key.password": f"{SECRET}{{{{ env.X }}}}"}}},
    ],
)
def test_literal_secrets(changes: dict[str, Any]) -> None:
    """The message says where it stands, and does not spread it into logs."""
    with pytest.raises(SecretInSpecError) as error:
        parse_attributes(attributes(**changes), {"X": "x"}, where="x.yaml")
    assert SECRET not in str(error.value)
    assert "x.yaml: " in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"source": {"options": {"kafka.sasl.jaas.config": "{{ env.X }}"}}},
        {"source": {"options": {"kafka.sasl.jaas.config": 'org.X password="{{ env.X }}";'}}},
        {"source": {"options": {"kafka.ssl.truststore.location": "/etc/ca.pem"}}},
        {"spark": {"conf": {"spark.hadoop.fs.s3a.aws.credentials.provider": "org.x.Provider"}}},
        {"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "{{ env('X') }}"}}},
        {"decode": {"schema": "token STRING, password STRING"}},
    ],
)
def test_what_is_no_secret(changes: dict[str, Any]) -> None:
    """A check that cries wolf is turned off."""
    parse_attributes(attributes(**changes), {"X": "x"}, where="x")


def test_rendered_secrets_are_not_shown() -> None:
    """A value from the environment may be a secret, also where it breaks a rule."""
    wrong = attributes(source={"topic": "{{ env.PASSWORD }}"})
    with pytest.raises(SpecError) as error:
        parse_attributes(wrong, {"PASSWORD": f"{SECRET} !"}, where="x")
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_environments_do_not_show_their_secrets() -> None:
    """They are logged and shown in tracebacks as a whole."""
    kafka = KafkaEnvironment.from_env(
        {
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SASL_MECHANISM": "PLAIN",
            "KAFKA_SASL_USERNAME": "me",
            "KAFKA_SASL_PASSWORD": SECRET,
        }
    )
    storage = StorageEnvironment.from_env(
        {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SECRET}
    )
    assert SECRET not in f"{kafka!r} {kafka} {storage!r} {storage}"
    assert SECRET in kafka.spark_options()["kafka.sasl.jaas.config"]


def test_password_cannot_end_the_login_line() -> None:
    """A quote in a password would let the rest of it be read as further login modules."""
    kafka = KafkaEnvironment.from_env(
        {
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "KAFKA_SASL_USERNAME": "me",
            "KAFKA_SASL_PASSWORD": 'a"; x\\',
        }
    )
    line = kafka.spark_options()["kafka.sasl.jaas.config"]
    assert line.endswith(r'password="a\"; x\\";')
    assert ".scram.ScramLoginModule required" in line


def test_login_without_password() -> None:
    """Kafka's own message for it is a timeout."""
    environ = {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "PLAIN"}
    with pytest.raises(SpecError, match="KAFKA_SASL_USERNAME is not set"):
        KafkaEnvironment.from_env(environ)
