"""Each rule of `check` that needs no service: provoked once, and quiet when all is well."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest_platform.adapters.kafka_admin import Retention
from ingest_platform.errors import KafkaUnreachableError
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.maintain.preflight.capacity import Machine, check_capacity, cores_of
from ingest_platform.maintain.preflight.findings import Finding, Level, exit_code
from ingest_platform.maintain.preflight.kafka import TopicFacts, check_topics
from ingest_platform.maintain.preflight.paths import check_paths, check_paths_apart
from ingest_platform.maintain.preflight.secrets import check_secrets
from ingest_platform.maintain.preflight.storage import check_storage
from ingest_platform.maintain.preflight.versions import check_machine, check_user_jars
from ingest_platform.model.status import Status
from ingest_platform.spark.jar_lock import JarLock, load_lock
from ingest_platform.spec import StreamSpec

HOURS = 3600 * 1000


def spec_of(name: str = "clicks", **sections) -> StreamSpec:
    """A spec with some sections' fields changed: `spec_of(table={"path": ...}, trigger="5m")`."""
    base = {
        "name": name,
        "source": {"topic": "t"},
        "decode": {"schema": "id STRING"},
        "table": {"path": f"s3a://lake/tables/{name}"},
    }
    for section, value in sections.items():
        base[section] = {**base.get(section, {}), **value} if isinstance(value, dict) else value
    return StreamSpec.model_validate(base)


def problems(findings: Iterable[Finding]) -> list[Finding]:
    """What is not well; every one of them must be complete."""
    bad = [f for f in findings if f.level is not Level.OK]
    assert all(f.what and f.why and f.remedy for f in bad)
    return bad


def only(findings: Iterable[Finding]) -> Finding:
    (finding,) = problems(findings)
    return finding


# --- paths ---------------------------------------------------------------------------------


def test_a_plain_stream_has_no_problem_with_paths():
    assert problems(check_paths(spec_of())) == []


@pytest.mark.parametrize(
    ("sections", "what", "level"),
    [
        (
            {
                "spark": {
                    "conf": {
                        "spark.sql.streaming.checkpointFileManagerClass": "org.X.FileContextBased"
                    }
                }
            },
            "the checkpoint is on S3",
            Level.ERROR,
        ),
        (
            {"table": {"path": "/data/clicks"}, "spark": {"master": "yarn"}},
            "/data/clicks and /data/_ingest/streams/clicks are local",
            Level.WARNING,
        ),
        (
            {"table": {"properties": {"delta.logRetentionDuration": "interval 3 days"}}},
            "delta.logRetentionDuration",
            Level.ERROR,
        ),
        (
            {"table": {"properties": {"delta.deletedFileRetentionDuration": "interval 2 hours"}}},
            "delta.deletedFileRetentionDuration is 2:00:00",
            Level.WARNING,
        ),
        (
            {"table": {"properties": {"delta.logRetentionDuration": "a month"}}},
            "not an interval",
            Level.ERROR,
        ),
        (
            {"spark": {"conf": {"delta.enableFastS3AListFrom": "true"}}},
            "delta.enableFastS3AListFrom is on",
            Level.ERROR,
        ),
    ],
)
def test_unfit_places_and_retention(sections, what, level):
    finding = only(check_paths(spec_of(**sections)))
    assert what in finding.what
    assert finding.level is level


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ([spec_of("orders", table={"path": "s3a://lake/tables/clicks"})], "both write"),
        ([spec_of("clicks", table={"path": "s3a://lake/other"})], "2 specs are named clicks"),
        (
            [spec_of("orders", table={"path": "s3a://lake/tables/clicks/orders"})],
            "lies inside s3a://lake/tables/clicks of stream clicks",
        ),
        (
            [spec_of("orders", state_path="s3a://lake/tables/clicks/state")],
            "state/streams/orders of stream orders lies inside",
        ),
    ],
)
def test_streams_in_each_others_way(others, what):
    """VACUUM of one table would delete another stream's checkpoint."""
    findings = problems(check_paths_apart([spec_of("clicks"), *others]))
    assert any(what in f.what for f in findings)
    assert exit_code(findings) == 2


def test_streams_beside_each_other_share_a_state_folder_safely():
    assert problems(check_paths_apart([spec_of("clicks"), spec_of("orders")])) == []


# --- secrets -------------------------------------------------------------------------------

SENTINEL = "s3ntinel-s3cret"


def test_a_secret_rendered_into_a_table_property_is_found_and_not_quoted():
    """A property is written into the log for good, where every reader of the table sees it."""
    spec = spec_of(table={"properties": {"owner.note": f"x{SENTINEL}y"}})
    finding = only(check_secrets(spec, {"MY_API_TOKEN": SENTINEL, "PATH": "/bin"}))
    assert "table.properties.owner.note holds the value of MY_API_TOKEN" in finding.what
    assert SENTINEL not in str(finding)


def test_a_secret_where_kafka_and_spark_redact_it_is_fine():
    spec = spec_of(source={"options": {"kafka.ssl.key.password": SENTINEL}})
    assert problems(check_secrets(spec, {"SSL_PASSWORD": SENTINEL})) == []


@pytest.mark.parametrize(
    ("environ", "what"),
    [
        ({"AWS_ENDPOINT_URL": "http://minio.example:9000"}, "without TLS at minio.example"),
        (
            {
                "KAFKA_BOOTSTRAP_SERVERS": "broker.example:9092",
                "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
                "KAFKA_SASL_MECHANISM": "PLAIN",
                "KAFKA_SASL_USERNAME": "u",
                "KAFKA_SASL_PASSWORD": SENTINEL,
            },
            "is SASL_PLAINTEXT",
        ),
        ({"KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "KAFKA_SASL_MECHANISM is not set"),
    ],
)
def test_logins_in_the_clear_and_incomplete_ones(environ, what):
    finding = only(check_secrets(spec_of(), environ))
    assert what in finding.what
    assert SENTINEL not in str(finding)


def test_loopback_needs_no_encryption():
    environ = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}
    assert problems(check_secrets(spec_of(), environ)) == []


# --- capacity ------------------------------------------------------------------------------

GIB = 1024**3


@pytest.mark.parametrize(
    ("spark", "cores"),
    [
        ({"master": "local[*]"}, 8),
        ({"master": "local[3]"}, 3),
        ({"master": "local"}, 1),
        ({"master": "yarn", "executors": 3, "executor_cores": 4}, 12),
    ],
)
def test_cores_that_a_master_gives(spark, cores):
    assert cores_of(spec_of(spark=spark).spark, Machine(8, GIB)) == cores


def test_cores_are_counted_as_seed_004_does():
    """A core per partition and stream, and one per executor for the sink's shared threads."""
    specs = [spec_of("a"), spec_of("b", spark={"master": "yarn", "executors": 4})]
    machine = Machine(8, 64 * GIB)
    findings = problems(check_capacity(specs, {"a": 8, "b": 8}, machine))
    assert [(f.stream, f.level) for f in findings] == [("a", Level.WARNING), ("b", Level.WARNING)]
    assert "reading all at once takes 9" in findings[0].what
    assert "reading all at once takes 12" in findings[1].what
    assert problems(check_capacity(specs, {"a": 7, "b": 4}, machine)) == []


def test_drivers_that_share_a_machine_are_added_up():
    specs = [spec_of("a"), spec_of("b")]
    findings = problems(check_capacity(specs, {}, Machine(4, 3 * GIB)))
    assert "2 local drivers may use 8 cores, the machine has 4" in findings[0].what
    assert "heap for 2 drivers" in findings[1].what
    assert findings[1].level is Level.ERROR


@pytest.mark.parametrize(
    ("sections", "what"),
    [
        ({"source": {"max_offsets_per_trigger": 50_000_000}}, "50,000,000 records"),
        ({"trigger": "20 minutes"}, "the trigger (0:20:00) is not shorter"),
    ],
)
def test_batches_that_cannot_be_in_time(sections, what):
    assert what in only(check_capacity([spec_of(**sections)], {}, Machine(4, 64 * GIB))).what


# --- kafka ---------------------------------------------------------------------------------


def facts(**retention) -> TopicFacts:
    kept = {"milliseconds": None, "bytes_per_partition": None, "compacted": False, **retention}
    return TopicFacts("t", {0: BrokerRange(10, 90), 1: BrokerRange(0, 5)}, Retention(**kept))


def test_a_topic_without_limits_and_a_position_inside_it_are_fine():
    status = Status(offsets={"t": {"0": 10, "1": 5}})
    assert problems(check_topics(spec_of(), [facts()], status)) == []


@pytest.mark.parametrize(
    ("retention", "level", "what"),
    [
        ({"milliseconds": 24 * HOURS}, Level.WARNING, "keeps records for 24 h, less than 72 h"),
        ({"bytes_per_partition": 10**7}, Level.WARNING, "at most 10.0 MB per partition"),
        ({"compacted": True}, Level.ERROR, "is compacted, but source.gaps is 'fail'"),
    ],
)
def test_topics_that_do_not_keep_what_the_stream_needs(retention, level, what):
    finding = only(check_topics(spec_of(), [facts(**retention)], None))
    assert what in finding.what
    assert finding.level is level


def test_a_compacted_topic_is_fine_where_gaps_are_counted():
    spec = spec_of(source={"gaps": "count"})
    assert problems(check_topics(spec, [facts(compacted=True)], None)) == []


@pytest.mark.parametrize(
    ("position", "what"),
    [("4", "read up to 4, but begins at 10"), ("91", "read up to 91, but ends at 90")],
)
def test_a_position_outside_of_the_topic_is_a_data_problem(position, what):
    """Faults 11 and 12: retention passed the stream, or the topic was made anew."""
    status = Status(offsets={"t": {"0": int(position)}})
    finding = only(check_topics(spec_of(), [facts()], status))
    assert what in finding.what
    assert finding.exit_code == 4


def test_a_silent_broker_is_an_environment_fault():
    error = KafkaUnreachableError("no answer", where="b:9092", remedy="check it")
    finding = only(check_topics(spec_of(), [error], None))
    assert (finding.exit_code, finding.remedy) == (3, "check it")


# --- versions ------------------------------------------------------------------------------


@pytest.mark.slow  # needs Java and the jars
def test_this_machine_fits_its_lock():
    """The lock and the environment that the tests run in were made for each other."""
    bad = [f for f in check_machine(os.environ, (3, 11)) if f.level is Level.ERROR]
    assert bad == []


def test_a_wrong_python_and_a_missing_java_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("ingest_platform.spark.java.JVM_FOLDER", tmp_path)
    found = problems(check_machine(os.environ, (3, 10)))
    assert "Python 3.10 is not one of" in found[0].what


def test_a_lock_for_other_versions_is_refused_with_both_sides(tmp_path):
    lock = load_lock()
    text = lock.source.read_text().replace("delta-spark_4.2_2.13", "delta-spark_4.0_2.12")
    other = tmp_path / "jars.lock.toml"
    other.write_text(text)
    found = problems(check_machine(os.environ, (3, 11), load_lock(other)))
    what = " ".join(f.what for f in found)
    assert "for Spark 4.0, but pyspark is 4.2.0" in what
    assert "Scala 2.12, but Spark runs Scala 2.13" in what
    assert exit_code(found) == 3


@pytest.mark.slow  # needs Java and the jars
def test_jars_that_are_not_downloaded_yet_are_a_warning(tmp_path):
    finding = only(check_machine({**os.environ, "INGEST_JAR_CACHE": str(tmp_path)}, (3, 11)))
    assert finding.level is Level.WARNING
    assert "are not in" in finding.what


@pytest.mark.slow  # needs Java and the jars
def test_a_jar_that_was_copied_into_sparks_folder_is_found(monkeypatch):
    from ingest_platform.maintain.preflight import versions

    shipped = versions._shipped_jars

    def all_but_one(folder: Path) -> set[str]:
        return {name for name in shipped(folder) if not name.startswith("spark-core_")}

    monkeypatch.setattr(versions, "_shipped_jars", all_but_one)
    finding = only(check_machine(os.environ, (3, 11)))
    assert "spark-core_2.13-4.2.0.jar was added" in finding.what


@pytest.mark.parametrize(
    ("conf", "what"),
    [
        ({"spark.jars.packages": "a:b:1"}, "spark.jars.packages is a:b:1"),
        ({"spark.jars": "/x/mine.jar"}, "spark.conf sets spark.jars"),
        (
            {"spark.driver.extraClassPath": "/x/util_2.12-1.0.jar"},
            "is for Scala 2.12, but Spark runs Scala 2.13",
        ),
        (
            {"spark.executor.extraClassPath": "/x/hadoop-client-api-3.3.4.jar:/x/fine.jar"},
            "but Spark has hadoop-client-api 3.5.0 itself",
        ),
    ],
)
def test_jars_that_a_spec_adds(conf, what):
    finding = only(check_user_jars(spec_of(spark={"conf": conf}), os.environ))
    assert what in finding.what


def test_a_lock_is_not_needed_to_say_that_there_is_none(tmp_path):
    empty = JarLock((), tmp_path / "none")
    assert exit_code(check_machine(os.environ, (3, 11), empty)) == 3


# --- storage, local ------------------------------------------------------------------------


def test_a_local_check_leaves_nothing_behind(tmp_path):
    spec = spec_of(table={"path": str(tmp_path / "a" / "clicks")})
    assert problems(check_storage(spec, {}, lambda: datetime.now(UTC))) == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "a").write_text("not a folder")
    spec = spec_of(table={"path": str(tmp_path / "a" / "clicks")})
    found = problems(check_storage(spec, {}, lambda: datetime.now(UTC)))
    assert exit_code(found) == 3
    assert (tmp_path / "a").read_text() == "not a folder"
