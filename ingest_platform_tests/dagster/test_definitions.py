"""What Dagster sees of a deployment: the asset graph, and clear errors instead of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox
from jsonschema import Draft202012Validator

import ingest_platform
from ingest_platform.components.attributes import StreamAttributes
from ingest_platform.components.kafka_delta_table import KafkaDeltaTable
from ingest_platform.components.resources import S3Resource, SparkResource, default_resources
from ingest_platform.definitions import defs as deployment_defs
from ingest_platform.errors import SecretInSpecError, SpecError
from ingest_platform_tests.dagster.conftest import QUIET
from ingest_platform_tests.dagster_home import REPOSITORY

pytestmark = QUIET

SNAPSHOT = Path(__file__).parent / "snapshots" / "definitions.json"
MINIMAL = {
    "name": "orders",
    "source": {"topic": "orders"},
    "decode": {"schema": "id BIGINT"},
    "table": {"path": "/lake/orders"},
}


def changed(**sections: Any) -> dict[str, Any]:
    """The minimal attributes with fields of sections replaced."""
    return {
        key: {**value, **sections.get(key, {})} if isinstance(value, dict) else value
        for key, value in MINIMAL.items()
    } | {key: value for key, value in sections.items() if not isinstance(value, dict)}


def graph(defs: dg.Definitions) -> dict[str, Any]:
    """The parts of the definitions that other things depend on, in order."""
    repository = defs.get_repository_def()
    assets = {}
    for spec in defs.resolve_all_asset_specs():
        policy = spec.freshness_policy
        assets[spec.key.to_user_string()] = {
            "deps": sorted(dep.asset_key.to_user_string() for dep in spec.deps),
            "group": spec.group_name,
            "kinds": sorted(spec.kinds),
            "owners": list(spec.owners),
            "freshness": str(policy) if policy else None,
            "metadata": sorted(key for key in spec.metadata if not key.startswith("dagster/code")),
        }
    return {
        "assets": dict(sorted(assets.items())),
        "jobs": sorted(name for name in repository.job_names if not name.startswith("__")),
        "resources": sorted(repository.get_top_level_resources()),
        "sensors": {
            s.name: {
                "jobs": sorted(target.job_name for target in s.targets),
                "status": s.default_status.name,
                "interval": s.minimum_interval_seconds,
            }
            for s in repository.sensor_defs
        },
        "schedules": {
            s.name: {"cron": s.cron_schedule, "status": s.default_status.name}
            for s in repository.schedule_defs
        },
    }


def test_asset_graph_is_the_reviewed_one(monkeypatch):
    """Renaming an asset loses its history; `UPDATE_SNAPSHOTS=1 pytest ...` accepts a change."""
    monkeypatch.delenv("INGEST_LAKE", raising=False)
    found = graph(deployment_defs())
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(SNAPSHOT.read_text())


def test_column_schema_names_data_partitions_and_coordinates():
    specs = {spec.key: spec for spec in deployment_defs().resolve_all_asset_specs()}
    schema = specs[dg.AssetKey(["clicks"])].metadata["dagster/column_schema"]
    names = [column.name for column in schema.columns]
    assert names[:2] == ["event_id", "event_time"]
    assert names[-5:] == [
        "event_time_hour",
        *("_kafka_topic", "_kafka_partition", "_kafka_offset", "_kafka_timestamp"),
    ]


def test_two_tables_of_one_topic_share_its_asset():
    """An asset has one definition; the second table must not break the deployment."""
    with create_defs_folder_sandbox() as sandbox:
        for name in ("orders", "orders_raw"):
            sandbox.scaffold_component(
                component_cls=KafkaDeltaTable,
                defs_path=name,
                defs_yaml_contents={
                    "type": "ingest_platform.KafkaDeltaTable",
                    "attributes": {
                        **MINIMAL,
                        "name": name,
                        "table": {"path": f"/lake/{name}"},
                    },
                },
            )
        with sandbox.build_all_defs() as defs:
            merged = dg.Definitions.merge(defs, dg.Definitions(resources=default_resources({})))
            keys = {spec.key.to_user_string() for spec in merged.resolve_all_asset_specs()}
            names = {sensor.name for sensor in merged.get_repository_def().sensor_defs}
    assert keys == {
        *("kafka/orders", "orders", "orders_quarantine", "orders_raw", "orders_raw_quarantine"),
        *("orders_compaction", "orders_vacuum", "orders_raw_compaction", "orders_raw_vacuum"),
    }
    assert names == {"orders_supervisor", "orders_raw_supervisor"}


@pytest.mark.parametrize(
    ("attributes", "field", "rule"),
    [
        (changed(name="Bad Name"), "name", "'Bad Name' does not match"),
        (changed(source={"colour": "red"}), "source", "'colour' was unexpected"),
        (
            changed(source={"max_offsets_per_trigger": "many"}),
            "source.max_offsets_per_trigger",
            "'many' is not of type 'integer'",
        ),
        (
            changed(decode={"unexpected_fields": "drop"}),
            "decode.unexpected_fields",
            "'drop' is not one of",
        ),
        (changed(trigger=True), "trigger", "True is not"),
        ({"name": "orders"}, "", "'source' is a required property"),
    ],
)
def test_schema_errors_name_field_and_rule(attributes, field, rule):
    """What `dg check yaml` says, and an editor that knows the schema while one types."""
    errors = list(
        Draft202012Validator(StreamAttributes.model_json_schema()).iter_errors(attributes)
    )
    found = [(".".join(map(str, error.absolute_path)), error.message) for error in errors]
    assert [message for path, message in found if path == field and rule in message], found


@pytest.mark.parametrize(
    "attributes",
    [
        MINIMAL,
        changed(source={"max_offsets_per_trigger": "{{ env.LIMIT }}"}),
        changed(source={"topic": "{{ env.TOPIC }}", "starting_offsets": "latest"}),
        changed(source={"starting_offsets": {"orders": {"0": 17}}}),
        changed(decode={"unexpected_fields": "{{ env('POLICY', 'ignore') }}"}),
        changed(trigger="5 seconds"),
        changed(trigger=5),
        changed(table={"partition_by": ["hours(ts)", "country"], "event_time": None}),
    ],
)
def test_schema_admits_templates_and_what_the_reader_admits(attributes):
    assert not list(
        Draft202012Validator(StreamAttributes.model_json_schema()).iter_errors(attributes)
    )


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        (changed(source={"topics": ["a"]}), ["source: ", "give either `topic` or `topics`"]),
        (changed(table={"path": "lake/x"}), ["table.path: ", "absolute path"]),
        (
            changed(table={"path": "{{ env.NO_SUCH_LAKE }}/x"}),
            ["table.path", "NO_SUCH_LAKE is not set", "export NO_SUCH_LAKE="],
        ),
        (
            changed(table={"partition_by": ["weeks(ts)"]}),
            ["table.partition_by", "weeks(ts)", "hours(column) or days(column)"],
        ),
    ],
)
def test_loading_errors_name_file_field_and_remedy(attributes, said, tmp_path):
    error = _load_error(attributes, tmp_path)
    assert isinstance(error, SpecError)
    for text in (*said, "defs.yaml", "remedy:"):
        assert text in str(error)


def test_secret_in_a_spec_is_refused_and_not_repeated(tmp_path):
    """Fault 32: the sentinel must appear nowhere, neither in the message nor in a chained error."""
    secret = "hunter2-sentinel"
    literal = _load_error(changed(source={"options": {"kafka.sasl.jaas.config": secret}}), tmp_path)
    assert isinstance(literal, SecretInSpecError)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SENTINEL", secret)
        rendered = _load_error(changed(source={"min_partitions": "{{ env.SENTINEL }}"}), tmp_path)
    for error in (literal, rendered):
        assert "source" in str(error)
        text = "".join(traceback.format_exception(error))
        assert secret not in text


def _load_error(attributes: dict[str, Any], folder: Path) -> BaseException:
    (folder / "defs.yaml").touch()
    context = dg.ComponentTree.for_test().load_context.for_path(folder)
    with pytest.raises(SpecError) as caught:
        KafkaDeltaTable.load(StreamAttributes(attributes), context)
    return caught.value


def test_resources_hold_names_of_secrets_and_not_values(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sentinel-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    s3 = S3Resource.from_environment(os.environ)
    assert "sentinel-secret" not in repr(s3)
    assert s3.path_style
    resolved = s3.process_config_and_initialize()
    storage = resolved.storage()
    assert storage.endpoint_url == "http://127.0.0.1:9000"
    assert storage.secret_access_key is not None
    assert storage.secret_access_key.get_secret_value() == "sentinel-secret"


def test_s3_resource_reaches_a_path_style_server(s3):
    resource = S3Resource(
        endpoint_url=s3.endpoint,
        region_name=s3.region,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
        path_style=True,
    )
    client = resource.get_client()
    client.put_object(Bucket=s3.bucket, Key="k", Body=b"v")
    assert client.get_object(Bucket=s3.bucket, Key="k")["Body"].read() == b"v"


def test_spark_resource_starts_no_jvm_until_asked():
    @dg.op
    def never_asks(spark: SparkResource) -> str:
        return spark.spec().driver_memory

    @dg.job(resource_defs={"spark": SparkResource(driver_memory="1g", s3=S3Resource())})
    def job() -> None:
        never_asks()

    result = job.execute_in_process()
    assert result.output_for_node("never_asks") == "1g"
    assert "pyspark.java_gateway" not in sys.modules or _no_gateway()


_USES_SPARK = """
import dagster as dg
from ingest_platform.components.resources import S3Resource, SparkResource

@dg.op
def counts(spark: SparkResource) -> int:
    session = spark.spark_session
    assert session is spark.spark_session
    assert session.conf.get("spark.sql.shuffle.partitions") == "3"
    assert "io.delta" in session.conf.get("spark.sql.extensions")
    return session.range(17).count()

spark = SparkResource(
    master="local[1]", driver_memory="512m", s3=S3Resource(),
    spark_config={"spark.sql.shuffle.partitions": 3},
)

@dg.job(resource_defs={"spark": spark})
def job():
    counts()

assert job.execute_in_process().output_for_node("counts") == 17
from pyspark.sql import SparkSession
assert SparkSession.getActiveSession() is None
print("stopped")
"""


@pytest.mark.slow
def test_spark_resource_gives_the_platforms_session_and_stops_it():
    """In a process of its own: a session is the process's, and other tests share theirs."""
    done = subprocess.run(
        [sys.executable, "-c", _USES_SPARK], capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("stopped\n"), done.stdout + done.stderr


def _no_gateway() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is None


def test_vocabulary_does_not_import_dagster():
    """Drivers start faster without it, and the command line answers at once."""
    code = (
        "import sys, ingest_platform.spec, ingest_platform.model; print('dagster' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert "KafkaDeltaTable" in dir(ingest_platform)
    assert ingest_platform.KafkaDeltaTable is KafkaDeltaTable
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        ingest_platform.Nothing  # noqa: B018


def dg_cli(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `dg` in a project."""
    return subprocess.run(
        [Path(sys.executable).parent / "dg", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_scaffolded_table_is_valid_and_short(project):
    """A new table is one YAML file of at most ten lines."""
    made = dg_cli(project, "scaffold", "defs", "ingest_platform.KafkaDeltaTable", "orders")
    assert made.returncode == 0, made.stdout + made.stderr
    lines = (project / "shop" / "defs" / "orders" / "defs.yaml").read_text().splitlines()
    assert len(lines) <= 10
    checked = dg_cli(project, "check", "defs")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
def test_dg_check_yaml_shows_file_line_and_field(project):
    file = project / "shop" / "defs" / "clicks" / "defs.yaml"
    file.write_text(file.read_text().replace("topic: clicks", "topic: clicks\n    colour: red"))
    checked = dg_cli(project, "check", "yaml")
    assert checked.returncode == 1
    for text in ("defs.yaml:6", "source.colour", "'colour' was unexpected"):
        assert text in checked.stdout


@pytest.mark.slow
def test_repository_checks_clean():
    for command in (["check", "defs", "--check-yaml"], ["list", "defs", "--json"]):
        done = dg_cli(REPOSITORY, *command)
        assert done.returncode == 0, done.stdout + done.stderr
