"""Rules of `check` about the spec, the machine and the environment: each provoked once."""

from __future__ import annotations

import pytest

from ingest_platform.adapters.kafka_admin import Retention
from ingest_platform.errors import KafkaUnreachableError, PortTakenError
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.maintain.preflight.capacity import Machine, check_capacity, cores_of
from ingest_platform.maintain.preflight.findings import exit_code, of_error
from ingest_platform.maintain.preflight.kafka import TopicFacts, check_topics
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.maintain.preflight.log_store import check_log_store
from ingest_platform.maintain.preflight.paths import check_paths, check_paths_apart
from ingest_platform.maintain.preflight.secrets import check_secrets
from ingest_platform.model.offsets import Positions
from ingest_platform_tests.unit.maintain.preflight.found import kinds, only, problems, spec_of

HOURS = 3600 * 1000


# --- paths ---------------------------------------------------------------------------------


def test_a_plain_stream_has_no_problem_with_paths():
    assert problems(check_paths(spec_of())) == []


@pytest.mark.parametrize(
    ("sections", "kind", "what", "level"),
    [
        (
            {
                "spark": {
                    "conf": {
                        "spark.sql.streaming.checkpointFileManagerClass": "org.X.FileContextBased"
                    }
                }
            },
            Kind.CHECKPOINT_MANAGER,
            "the checkpoint is on S3",
            Level.ERROR,
        ),
        (
            {"table": {"path": "/data/clicks"}, "spark": {"master": "yarn"}},
            Kind.LOCAL_PATHS,
            "/data/clicks and /data/_ingest/streams/clicks are local",
            Level.WARNING,
        ),
        (
            {"table": {"properties": {"delta.logRetentionDuration": "interval 3 days"}}},
            Kind.RETENTION_ORDER,
            "delta.logRetentionDuration",
            Level.ERROR,
        ),
        (
            {"table": {"properties": {"delta.deletedFileRetentionDuration": "interval 2 hours"}}},
            Kind.RETENTION_SHORT,
            "delta.deletedFileRetentionDuration is 2:00:00",
            Level.WARNING,
        ),
        (
            {"table": {"properties": {"delta.logRetentionDuration": "a month"}}},
            Kind.RETENTION_UNREADABLE,
            "not an interval",
            Level.ERROR,
        ),
        (
            {"spark": {"conf": {"delta.enableFastS3AListFrom": "true"}}},
            Kind.FAST_LISTING,
            "delta.enableFastS3AListFrom is on",
            Level.ERROR,
        ),
    ],
)
def test_unfit_places_and_retention(sections, kind, what, level):
    finding = only(check_paths(spec_of(**sections)), kind)
    assert what in finding.what
    assert finding.level is level


@pytest.mark.parametrize(
    ("others", "kind", "what"),
    [
        (
            [spec_of("orders", table={"path": "s3a://lake/tables/clicks"})],
            Kind.SAME_PATH,
            "both write",
        ),
        (
            [spec_of("clicks", table={"path": "s3a://lake/other"})],
            Kind.SAME_NAME,
            "2 specs are named clicks",
        ),
        (
            [spec_of("orders", table={"path": "s3a://lake/tables/clicks/orders"})],
            Kind.PATH_INSIDE,
            "lies inside s3a://lake/tables/clicks of stream clicks",
        ),
        (
            [spec_of("orders", state_path="s3a://lake/tables/clicks/state")],
            Kind.PATH_INSIDE,
            "state/streams/orders of stream orders lies inside",
        ),
    ],
)
def test_streams_in_each_others_way(others, kind, what):
    """VACUUM of one table would delete another stream's checkpoint."""
    findings = problems(check_paths_apart([spec_of("clicks"), *others]))
    assert any(f.kind is kind and what in f.what for f in findings)
    assert exit_code(findings) == 2


def test_streams_beside_each_other_share_a_state_folder_safely():
    assert problems(check_paths_apart([spec_of("clicks"), spec_of("orders")])) == []


# --- the LogStore ----------------------------------------------------------------------------


def test_another_log_store_in_the_spec():
    """Delta's own loses commits when two drivers write."""
    conf = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}
    finding = only(check_log_store(spec_of(spark={"conf": conf}), {}), Kind.COMMITS_UNSAFE)
    assert "S3SingleDriverLogStore would let two drivers lose" in finding.what
    assert finding.exit_code == 2


def test_another_log_store_beside_spark(tmp_path):
    """What an administrator put there counts for every session, whatever the spec says."""
    (tmp_path / "spark-defaults.conf").write_text(
        "# for the old cluster\n\nspark.eventLog.enabled true\n"
        "spark.hadoop.fs.s3a.bucket.lake.create.performance=true\n"
    )
    environ = {"SPARK_CONF_DIR": str(tmp_path)}
    finding = only(check_log_store(spec_of(), environ), Kind.COMMITS_UNSAFE)
    assert str(tmp_path) in finding.what
    assert "bucket.lake.create.performance" in finding.what


def test_the_log_store_in_force_is_told(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.delta.logStore.s3a.impl x.Y\n")
    (finding,) = check_log_store(spec_of(), {"SPARK_CONF_DIR": str(tmp_path)})
    assert (finding.kind, finding.what) == (
        Kind.OK,
        "commits go through ingest.platform.ConditionalPutLogStore",
    )


# --- secrets -------------------------------------------------------------------------------

SENTINEL = "s3ntinel-s3cret"


def test_a_secret_rendered_into_a_table_property_is_found_and_not_quoted():
    """A property is written into the log for good, where every reader of the table sees it."""
    spec = spec_of(table={"properties": {"owner.note": f"x{SENTINEL}y"}})
    environ = {"MY_API_TOKEN": SENTINEL, "PATH": "/bin"}
    finding = only(check_secrets(spec, environ), Kind.SECRET_LEAKS)
    assert "table.properties.owner.note holds the value of MY_API_TOKEN" in finding.what
    assert SENTINEL not in str(finding)


def test_a_secret_where_kafka_and_spark_redact_it_is_fine():
    spec = spec_of(source={"options": {"kafka.ssl.key.password": SENTINEL}})
    assert problems(check_secrets(spec, {"SSL_PASSWORD": SENTINEL})) == []


@pytest.mark.parametrize(
    ("environ", "kind", "what"),
    [
        (
            {"AWS_ENDPOINT_URL": "http://minio.example:9000"},
            Kind.S3_IN_THE_CLEAR,
            "without TLS at minio.example",
        ),
        (
            {
                "KAFKA_BOOTSTRAP_SERVERS": "broker.example:9092",
                "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
                "KAFKA_SASL_MECHANISM": "PLAIN",
                "KAFKA_SASL_USERNAME": "u",
                "KAFKA_SASL_PASSWORD": SENTINEL,
            },
            Kind.LOGIN_IN_THE_CLEAR,
            "is SASL_PLAINTEXT",
        ),
        (
            {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL"},
            Kind.LOGIN_INCOMPLETE,
            "KAFKA_SASL_MECHANISM is not set",
        ),
    ],
)
def test_logins_in_the_clear_and_incomplete_ones(environ, kind, what):
    finding = only(check_secrets(spec_of(), environ), kind)
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


def test_a_core_per_partition_of_each_stream_and_one_per_executor():
    """The executors' cores beyond the partitions are for the threads that the sink shares."""
    specs = [spec_of("a"), spec_of("b", spark={"master": "yarn", "executors": 4})]
    machine = Machine(8, 64 * GIB)
    findings = problems(check_capacity(specs, {"a": 8, "b": 8}, machine))
    assert [(f.stream, f.kind, f.level) for f in findings] == [
        ("a", Kind.CORES, Level.WARNING),
        ("b", Kind.CORES, Level.WARNING),
    ]
    assert "reading all at once takes 9" in findings[0].what
    assert "reading all at once takes 12" in findings[1].what
    assert problems(check_capacity(specs, {"a": 7, "b": 4}, machine)) == []


def test_drivers_that_share_a_machine_are_added_up():
    specs = [spec_of("a"), spec_of("b")]
    findings = problems(check_capacity(specs, {}, Machine(4, 3 * GIB)))
    assert [f.kind for f in findings] == [Kind.CORES_SHARED, Kind.MEMORY]
    assert "2 local drivers may use 8 cores, the machine has 4" in findings[0].what
    assert "heap for 2 drivers" in findings[1].what
    assert findings[1].level is Level.ERROR


@pytest.mark.parametrize(
    ("sections", "kind", "what"),
    [
        (
            {"source": {"max_offsets_per_trigger": 50_000_000}},
            Kind.BATCH_MEMORY,
            "50,000,000 records",
        ),
        ({"trigger": "20 minutes"}, Kind.TRIGGER, "the trigger (0:20:00) is not shorter"),
    ],
)
def test_batches_that_cannot_be_in_time(sections, kind, what):
    found = check_capacity([spec_of(**sections)], {}, Machine(4, 64 * GIB))
    assert what in only(found, kind).what


@pytest.mark.parametrize(
    ("tasks", "why"), [("200", "most of them for a few rows"), ("1", "cores stay idle")]
)
def test_shuffle_partitions_that_fit_neither_topic_nor_cores(tasks, why):
    """200, Spark's own default, makes 200 tasks of the smallest batch."""
    spec = spec_of(spark={"conf": {"spark.sql.shuffle.partitions": tasks}})
    finding = only(
        check_capacity([spec], {"clicks": 3}, Machine(4, 64 * GIB)), Kind.SHUFFLE_PARTITIONS
    )
    assert why in finding.why
    assert finding.remedy.endswith("set it to 4")
    fitting = spec_of(spark={"conf": {"spark.sql.shuffle.partitions": "8"}})
    assert problems(check_capacity([fitting], {"clicks": 3}, Machine(4, 64 * GIB))) == []


# --- kafka: thresholds; the broker itself is asked in cli/test_check.py ------------------------


def facts(**retention) -> TopicFacts:
    kept = {"milliseconds": None, "bytes_per_partition": None, "compacted": False, **retention}
    return TopicFacts("t", {0: BrokerRange(10, 90), 1: BrokerRange(0, 5)}, Retention(**kept))


def test_a_topic_without_limits_and_a_position_inside_it_are_fine():
    read = Positions({"t": {0: 10, 1: 5}})
    assert problems(check_topics(spec_of(), [facts()], read=read)) == []


def test_the_spec_says_how_long_a_topic_must_keep_records():
    topic = facts(milliseconds=24 * HOURS)
    finding = only(check_topics(spec_of(), [topic]), Kind.RETENTION_TIME)
    assert "keeps records for 24 h, less than 72 h" in finding.what
    assert finding.level is Level.WARNING
    modest = spec_of(checks={"topic_retention": "24 hours"})
    assert problems(check_topics(modest, [topic])) == []


def test_a_compacted_topic_is_fine_where_gaps_are_counted():
    spec = spec_of(source={"gaps": "count"})
    assert problems(check_topics(spec, [facts(compacted=True)])) == []


@pytest.mark.parametrize(
    ("position", "kind"),
    [(9, Kind.OFFSETS_DELETED), (10, None), (90, None), (91, Kind.TOPIC_RECREATED)],
)
def test_a_position_outside_of_the_topic_is_a_data_problem(position, kind):
    """Faults 11 and 12: retention passed the stream, or the topic was made anew."""
    found = list(check_topics(spec_of(), [facts()], read=Positions({"t": {0: position}})))
    assert kinds(found) == ({kind} if kind else set())
    assert exit_code(found) == (4 if kind else 0)


def test_a_silent_broker_is_an_environment_fault():
    error = KafkaUnreachableError("no answer", where="b:9092", remedy="check it")
    finding = only(check_topics(spec_of(), [error]), Kind.KAFKA_UNREACHABLE)
    assert (finding.exit_code, finding.remedy) == (3, "check it")


# --- errors of the tree ------------------------------------------------------------------------


def test_an_error_without_a_kind_of_its_own_is_told_all_the_same():
    finding = of_error(Group.STORAGE, PortTakenError("x", remedy="y"), "z")
    assert (finding.kind, finding.exit_code) == (Kind.OTHER, 3)
