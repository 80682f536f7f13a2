"""The user's own function between decoding and table: free in its columns, not in its rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from ingest_platform.embedded.kafka import KafkaServer
from ingest_platform.errors import LedgerImbalanceError, SpecError
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.topic_records import Place, as_records, produce

pytestmark = pytest.mark.slow

Deploy = Callable[..., DeployedStream]
MakeTopic = Callable[..., str]

MODULE = "ingest_platform_tests.spark.transforms"
VALUES = [b'{"id":1,"name":"a"}', b"{", b'{"id":2,"name":"b"}', None]


@pytest.fixture
def run(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> Callable[[str], tuple[DeployedStream, list[Place]]]:
    """Sends `VALUES` through a transform: `run("without_odd_ids")`."""

    def run_with(function: str) -> tuple[DeployedStream, list[Place]]:
        name = topic()
        stream = deploy(name, "id BIGINT, name STRING", transform=f"{MODULE}:{function}")
        places = produce(kafka.bootstrap_servers, name, as_records(VALUES))
        stream.drain(spark)
        return stream, places

    return run_with


def test_new_column_is_in_the_table(run: Callable) -> None:
    """What a transform computes is what the user wants to read."""
    stream, places = run("with_another_column")
    stream.assert_holds(places[:3])
    assert [(r["id"], r["twice"]) for r in stream.rows()] == [(1, 2), (2, 4)]


def test_dropped_rows_are_counted(run: Callable) -> None:
    """A filter is the user's declared policy; the ledger must say how many rows it took."""
    stream, _ = run("without_odd_ids")
    assert [r["id"] for r in stream.rows()] == [2]
    [ledger] = stream.ledgers()
    assert (ledger.read, ledger.written, ledger.quarantined, ledger.skipped) == (4, 1, 1, 2)
    assert stream.audit().clean


def test_doubled_rows_are_refused(
    spark: SparkSession, kafka: KafkaServer, topic: MakeTopic, deploy: Deploy
) -> None:
    """Rows that no record accounts for are duplicates to every reader; nothing is committed."""
    name = topic()
    stream = deploy(name, "id BIGINT, name STRING", transform=f"{MODULE}:doubled")
    places = produce(kafka.bootstrap_servers, name, as_records(VALUES))
    with pytest.raises(LedgerImbalanceError, match="does not balance and was not committed"):
        stream.drain(spark)
    assert (stream.rows(), stream.ledgers()) == ([], [])
    stream.edit(transform=None)
    stream.drain(spark)
    stream.assert_holds(places[:3])


@pytest.mark.parametrize(
    ("function", "finding"),
    [
        ("failing", "the transform fails on the table's columns"),
        ("without_coordinates", "the transform drops _kafka_topic, "),
        ("returning_nothing", "the transform fails"),
        ("missing", "cannot be loaded"),
    ],
)
def test_wrong_transform_is_the_users_error(run: Callable, function: str, finding: str) -> None:
    """Found before anything is written, and not tried again for ever."""
    with pytest.raises(SpecError, match=finding):
        run(function)


def test_transform_that_changes_a_type_later(run: Callable, spark: SparkSession) -> None:
    """Delta would commit files that no reader of the table can read."""
    stream, places = run("with_name_in_capitals")
    stream.edit(transform=f"{MODULE}:with_another_type")
    [name], servers = stream.spec.source.all_topics, stream.environ["KAFKA_BOOTSTRAP_SERVERS"]
    produce(servers, name, as_records([b'{"id":3}']))
    with pytest.raises(SpecError, match="column id is bigint in the table, but string"):
        stream.drain(spark)
    stream.edit(transform=f"{MODULE}:with_types_by_content")
    with pytest.raises(SpecError, match="column id is string after the transform"):
        stream.drain(spark)
    assert stream.held().keys() == set(places[:3])
    assert {r["name"] for r in stream.rows()} == {"A", "B"}
