"""Commits of several writers: each version has one winner, and no commit is lost or doubled.

These run the LogStores in JVMs of their own, without Spark: what is at stake is the last step of
a commit, and there a race is a matter of microseconds, which whole drivers would rarely hit.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from ingest_platform.spark.classpath import classpath
from ingest_platform.spark.installed import spark_jars_dir
from ingest_platform.spark.java import Java, find_java
from ingest_platform.spark.logstore.compile import LOCAL_LOGSTORE_CLASS, LOGSTORE_CLASS
from ingest_platform_tests.conftest import S3Bucket
from ingest_platform_tests.fault_proxy import FaultProxy
from ingest_platform_tests.log_writer import LogWriter, compile_log_writer

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(180)]

STOCK_LOCAL_LOGSTORE = "io.delta.storage.HDFSLogStore"
STOCK_S3_LOGSTORE = "io.delta.storage.S3SingleDriverLogStore"

COMMIT = r"/_delta_log/\d{20}\.json$"
LINE = "x" * 1000

WAIT_MILLIS = "spark.ingest.commit.checksumWaitMillis"
WAIT_SECONDS = 4

# Two requests of the SDK each, and S3A's own retries short: the tests provoke failures on purpose.
IMPATIENT = {
    "fs.s3a.attempts.maximum": "2",
    "fs.s3a.retry.limit": "2",
    "fs.s3a.retry.interval": "50ms",
    "fs.s3a.retry.throttle.limit": "2",
    "fs.s3a.retry.throttle.interval": "50ms",
}

MakeWriter = Callable[..., LogWriter]


@dataclass(frozen=True)
class WriterProgram:
    """The compiled writer, ready to run."""

    java: Java
    class_path: list[str]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> WriterProgram:
    """The writer's class with the platform's own class path."""
    java = find_java(os.environ)
    jars = classpath(os.environ, java=java)
    spark_jars = spark_jars_dir(os.environ)
    storage = next(jar for jar in jars if jar.name.startswith("delta-storage-"))
    out = tmp_path_factory.mktemp("classes")
    compile_log_writer(out, java=java, spark_jars=spark_jars, delta_storage=storage)
    return WriterProgram(java, [str(out), *(str(jar) for jar in jars), f"{spark_jars}/*"])


@pytest.fixture
def writer(program: WriterProgram, tmp_path: Path) -> Iterator[MakeWriter]:
    """Starts writers: `writer(LOGSTORE_CLASS, settings)`; they end with the test."""
    with ExitStack() as stack:
        count = iter(range(100))

        def start(logstore: str, settings: dict[str, str] | None = None) -> LogWriter:
            log = tmp_path / f"writer-{next(count)}.log"
            return stack.enter_context(
                LogWriter(
                    logstore,
                    java=program.java,
                    class_path=program.class_path,
                    settings=settings or {},
                    log=log,
                )
            )

        yield start


def version_uri(table: str, version: int) -> str:
    return f"{table}/_delta_log/{version:020d}.json"


def read_object(s3: S3Bucket, uri: str) -> bytes:
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
        region_name=s3.region,
        config=Config(s3={"addressing_style": "path"}),
    )
    try:
        return client.get_object(Bucket=s3.bucket, Key=uri.removeprefix(f"s3a://{s3.bucket}/"))[
            "Body"
        ].read()
    except client.exceptions.NoSuchKey:
        return b""
    finally:
        client.close()


def race(first: LogWriter, second: LogWriter, table: str, rounds: int, lines: int = 1) -> list[str]:
    """Let two writers write each version at once; what each said, as `w1+w2` per round."""
    outcomes = []
    for version in range(rounds):
        first.begin(version_uri(table, version), f"first-{version}-{LINE}", lines=lines)
        second.begin(version_uri(table, version), f"second-{version}-{LINE}", lines=lines)
        outcomes.append(f"{first.finish()}+{second.finish()}")
    return outcomes


def assert_winners_stored(outcomes: list[str], stored: Callable[[int], bytes]) -> None:
    """One winner per round, and the stored version is the winner's."""
    assert set(outcomes) <= {"committed+exists", "exists+committed"}, Counter(outcomes)
    for version, outcome in enumerate(outcomes):
        winner = "first" if outcome.startswith("committed") else "second"
        assert stored(version).startswith(f"{winner}-{version}-".encode())


def test_two_jvms_on_s3_lose_no_commit(writer: MakeWriter, s3: S3Bucket) -> None:
    """A lost commit is silent: the table simply lacks rows that were acknowledged."""
    table = f"s3a://{s3.bucket}/t"
    first, second = [writer(LOGSTORE_CLASS, s3.hadoop_settings()) for _ in range(2)]
    outcomes = race(first, second, table, rounds=60)
    assert_winners_stored(outcomes, lambda v: read_object(s3, version_uri(table, v)))


def test_the_race_is_one_that_the_stock_store_loses(writer: MakeWriter, s3: S3Bucket) -> None:
    """Without this control a race that never races would prove nothing about our store."""
    table = f"s3a://{s3.bucket}/t"
    first, second = [writer(STOCK_S3_LOGSTORE, s3.hadoop_settings()) for _ in range(2)]
    assert "committed+committed" in race(first, second, table, rounds=40)


def test_create_performance_does_not_weaken_the_store(writer: MakeWriter, s3: S3Bucket) -> None:
    """S3A skips its own existence checks then; only the conditional request is left to decide."""
    table = f"s3a://{s3.bucket}/t"
    settings = s3.hadoop_settings() | {"fs.s3a.create.performance": "true"}
    first, second = [writer(LOGSTORE_CLASS, settings) for _ in range(2)]
    outcomes = race(first, second, table, rounds=20)
    assert_winners_stored(outcomes, lambda v: read_object(s3, version_uri(table, v)))


def test_large_commits_race_by_multipart_upload(writer: MakeWriter, s3: S3Bucket) -> None:
    """A commit above the part size takes another request path, which must be conditional too."""
    table = f"s3a://{s3.bucket}/t"
    settings = s3.hadoop_settings() | {"fs.s3a.multipart.size": "5M"}
    first, second = [writer(LOGSTORE_CLASS, settings) for _ in range(2)]
    outcomes = race(first, second, table, rounds=5, lines=8000)
    assert_winners_stored(outcomes, lambda v: read_object(s3, version_uri(table, v)))


def read_local(table: Path, version: int) -> bytes:
    return Path(version_uri(str(table), version)).read_bytes()


def test_two_jvms_on_a_local_path_lose_no_commit(writer: MakeWriter, tmp_path: Path) -> None:
    """Delta's own store for local paths checks and then renames, which replaces a racing commit."""
    first, second = [writer(LOCAL_LOGSTORE_CLASS) for _ in range(2)]
    outcomes = race(first, second, (tmp_path / "t").as_uri(), rounds=400)
    assert_winners_stored(outcomes, lambda v: read_local(tmp_path / "t", v))
    left_over = [p.name for p in (tmp_path / "t/_delta_log").iterdir() if p.name.startswith(".")]
    assert left_over == []


def test_local_store_takes_over_from_the_stock_store(writer: MakeWriter, tmp_path: Path) -> None:
    """A log may hold versions of either store, with Hadoop's checksum files beside the older."""
    uri = (tmp_path / "t").as_uri()
    (tmp_path / "t/_delta_log").mkdir(parents=True)
    stock, ours = writer(STOCK_LOCAL_LOGSTORE), writer(LOCAL_LOGSTORE_CLASS)
    assert stock.write(version_uri(uri, 0), "stock") == "committed"
    assert ours.write(version_uri(uri, 0), "ours") == "exists"
    assert ours.write(version_uri(uri, 1), "ours") == "committed"
    assert stock.write(version_uri(uri, 1), "stock") == "exists"
    assert [read_local(tmp_path / "t", v) for v in range(2)] == [b"stock\n", b"ours\n"]


def test_broken_action_publishes_nothing_locally(writer: MakeWriter, tmp_path: Path) -> None:
    """A commit is there whole or not at all, and a failed one leaves no file behind."""
    uri = version_uri((tmp_path / "t").as_uri(), 0)
    outcome = writer(LOCAL_LOGSTORE_CLASS).write(uri, LINE, lines=100, break_after=50)
    assert "broken action" in outcome
    assert list((tmp_path / "t/_delta_log").iterdir()) == []


def test_lost_response_is_not_a_conflict(writer: MakeWriter, s3: S3Bucket) -> None:
    """The SDK tries again and meets its own commit: taken for a conflict, the batch is doubled."""
    table = f"s3a://{s3.bucket}/t"
    with FaultProxy(s3.endpoint) as proxy:
        w = writer(LOGSTORE_CLASS, s3.hadoop_settings(proxy.endpoint))
        lost = [proxy.drop_response(method="PUT", path=rf"/{v:020d}\.json$") for v in range(10)]
        outcomes = [w.write(version_uri(table, v), f"p{v}") for v in range(10)]
    assert [fault.hits for fault in lost] == [1] * 10
    assert outcomes == ["committed"] * 10
    assert [read_object(s3, version_uri(table, v)) for v in range(10)] == [
        f"p{v}\n".encode() for v in range(10)
    ]


def test_no_response_to_any_try(writer: MakeWriter, s3: S3Bucket) -> None:
    """No 412 is ever seen then, only resets; the commit is there all the same."""
    table = f"s3a://{s3.bucket}/t"
    with FaultProxy(s3.endpoint) as proxy:
        w = writer(LOGSTORE_CLASS, s3.hadoop_settings(proxy.endpoint) | IMPATIENT)
        lost = proxy.drop_response(method="PUT", path=COMMIT, times=None)
        assert w.write(version_uri(table, 0), "p") == "committed"
        assert lost.hits >= 2
    assert read_object(s3, version_uri(table, 0)) == b"p\n"


def test_lost_response_of_a_multipart_commit(writer: MakeWriter, s3: S3Bucket) -> None:
    """The completion landed, its retry finds no upload any more: still our commit."""
    table = f"s3a://{s3.bucket}/t"
    with FaultProxy(s3.endpoint) as proxy:
        settings = s3.hadoop_settings(proxy.endpoint) | IMPATIENT | {"fs.s3a.multipart.size": "5M"}
        lost = proxy.drop_response(method="POST", path=r"\.json\?uploadId=")
        outcome = writer(LOGSTORE_CLASS, settings).write(version_uri(table, 0), LINE, lines=8000)
        assert lost.hits == 1
    assert outcome == "committed"
    assert len(read_object(s3, version_uri(table, 0))) == 8000 * (len(LINE) + 1)


def test_lost_response_and_a_real_conflict(writer: MakeWriter, s3: S3Bucket) -> None:
    """Whoever else holds the version keeps it, also when our own failure was no 412."""
    table = f"s3a://{s3.bucket}/t"
    with FaultProxy(s3.endpoint) as proxy:
        settings = s3.hadoop_settings(proxy.endpoint) | {"fs.s3a.create.performance": "true"}
        w = writer(LOGSTORE_CLASS, settings | IMPATIENT)
        assert (
            writer(LOGSTORE_CLASS, s3.hadoop_settings()).write(version_uri(table, 0), "other")
            == "committed"
        )
        lost = proxy.drop_response(method="PUT", path=COMMIT, times=None)
        assert w.write(version_uri(table, 0), "mine") == "exists"
        assert lost.hits >= 1
    assert read_object(s3, version_uri(table, 0)) == b"other\n"


def test_request_that_never_arrived_is_a_failure(writer: MakeWriter, s3: S3Bucket) -> None:
    """Neither committed nor a conflict: the caller repeats the batch."""
    table = f"s3a://{s3.bucket}/t"
    with FaultProxy(s3.endpoint) as proxy:
        w = writer(LOGSTORE_CLASS, s3.hadoop_settings(proxy.endpoint) | IMPATIENT)
        refused = proxy.answer(503, method="PUT", path=COMMIT)
        assert w.write(version_uri(table, 0), "p").startswith("error ")
        refused.remove()
        assert w.write(version_uri(table, 0), "p") == "committed"


def test_unknown_outcome_is_said_to_be_unknown(writer: MakeWriter, s3: S3Bucket) -> None:
    """Guessing either way would lose the batch or double it."""
    table = f"s3a://{s3.bucket}/t"
    with FaultProxy(s3.endpoint) as proxy:
        w = writer(LOGSTORE_CLASS, s3.hadoop_settings(proxy.endpoint) | IMPATIENT)
        proxy.drop_response(method="PUT", path=COMMIT, times=None)
        proxy.answer(503, method="HEAD", path=COMMIT)
        outcome = w.write(version_uri(table, 0), "p")
    assert outcome.startswith("error "), outcome
    assert "unknown whether the commit" in outcome


def test_broken_action_publishes_nothing(writer: MakeWriter, s3: S3Bucket) -> None:
    """Closing the stream after a failure would publish a commit that lacks files."""
    table = f"s3a://{s3.bucket}/t"
    w = writer(LOGSTORE_CLASS, s3.hadoop_settings())
    outcome = w.write(version_uri(table, 0), LINE, lines=100, break_after=50)
    assert "broken action" in outcome
    assert read_object(s3, version_uri(table, 0)) == b""


def test_store_refuses_when_conditional_create_is_disabled(
    writer: MakeWriter, s3: S3Bucket
) -> None:
    """A setting that turns the guard off must stop commits, not make them unsafe."""
    table = f"s3a://{s3.bucket}/t"
    settings = s3.hadoop_settings() | {"fs.s3a.create.conditional.enabled": "false"}
    w = writer(LOGSTORE_CLASS, settings | {"fs.s3a.create.performance": "true"})
    assert w.write(version_uri(table, 0), "first").startswith("error ")
    assert read_object(s3, version_uri(table, 0)) == b""


@pytest.mark.parametrize("where", ["s3", "local"])
def test_a_loser_waits_for_the_winners_checksum(
    writer: MakeWriter, s3: S3Bucket, tmp_path: Path, where: str
) -> None:
    """Delta would replay the log for want of it; a winner may write none, so not for long."""
    table = f"s3a://{s3.bucket}/t" if where == "s3" else str(tmp_path / "t")
    store = LOGSTORE_CLASS if where == "s3" else LOCAL_LOGSTORE_CLASS
    settings = s3.hadoop_settings() | {WAIT_MILLIS: str(WAIT_SECONDS * 1000)}
    winner, loser = writer(store, s3.hadoop_settings()), writer(store, settings)
    checksum = version_uri(table, 0).replace(".json", ".crc")
    assert winner.write(version_uri(table, 0), LINE) == "committed"
    assert winner.write(version_uri(table, 1), LINE) == "committed"
    started = time.monotonic()
    loser.begin(version_uri(table, 0), LINE)
    time.sleep(WAIT_SECONDS / 4)
    assert winner.write(checksum, LINE) == "committed"
    assert loser.finish() == "exists"
    assert time.monotonic() - started < WAIT_SECONDS * 0.9
    started = time.monotonic()
    assert loser.write(version_uri(table, 1), LINE) == "exists"
    assert WAIT_SECONDS <= time.monotonic() - started < 2 * WAIT_SECONDS
