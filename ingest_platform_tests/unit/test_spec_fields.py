"""The types that all specs share, on what people write and on what nobody should."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ingest_platform.spec.fields import Duration, Name, PartitionColumn, StoragePath, Topic

DURATION = TypeAdapter(Duration)
NAME = TypeAdapter(Name)
PATH = TypeAdapter(StoragePath)
TOPIC = TypeAdapter(Topic)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15 seconds", 15),
        ("15s", 15),
        ("1.5 min", 90),
        ("5m", 300),
        ("5 Minutes", 300),
        ("20h", 72_000),
        ("7 days", 604_800),
        ("1 week", 604_800),
        ("500 ms", 0.5),
        ("0s", 0),
        ("PT5M", 300),
        (30, 30),
        (0.5, 0.5),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    """Spark's, Kubernetes' and ISO's ways of writing them all mean what they say."""
    assert DURATION.validate_python(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["5 months", "5 mss", "soon", "", "5 m 3", "1h30m", "five s"])
def test_no_durations(text: str) -> None:
    """A guess would be wrong by a factor of sixty, or of sixty thousand."""
    with pytest.raises(ValidationError):
        DURATION.validate_python(text)


@given(st.integers(min_value=0, max_value=10**8).map(lambda n: n / 1000))
def test_durations_survive_being_written(seconds: float) -> None:
    """Specs are handed to other processes as JSON."""
    duration = timedelta(seconds=seconds)
    read = DURATION.validate_json(DURATION.dump_json(duration))
    assert abs(read - duration) <= timedelta(seconds=seconds * 1e-5)


@pytest.mark.parametrize("name", ["a", "clicks", "clicks_2", "a" * 48])
def test_names(name: str) -> None:
    assert NAME.validate_python(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Clicks",
        "2clicks",
        "_x",
        "a-b",
        "a.b",
        "a/b",
        "../a",
        "a b",
        "a\n",
        "a\0",
        "ä",
        "a" * 49,
        "{{a}}",
        "a;rm",
        "$(a)",
        "a'",
        "-a",
        "~",
    ],
)
def test_hostile_names(name: str) -> None:
    """Names become folders, tags, labels and parts of SQL, where nobody escapes them any more."""
    with pytest.raises(ValidationError):
        NAME.validate_python(name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a,b", "ä", "a" * 250, "a\n", "*"])
def test_hostile_topics(name: str) -> None:
    """`a,b` would subscribe to two topics, `*` is what a pattern looks like."""
    with pytest.raises(ValidationError):
        TOPIC.validate_python(name)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/lake/clicks", "/lake/clicks"),
        ("/lake/clicks/", "/lake/clicks"),
        ("/my lake/50% = ü", "/my lake/50% = ü"),
        ("file:///lake/clicks", "/lake/clicks"),
        ("s3a://lake/clicks", "s3a://lake/clicks"),
        ("s3://lake/a/b/", "s3a://lake/a/b"),
    ],
)
def test_paths(text: str, path: str) -> None:
    """One spelling for one place: leases and checks compare paths as text."""
    assert PATH.validate_python(text) == path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "lake/clicks",
        "./clicks",
        "file://lake/clicks",
        "~/clicks",
        "/lake/../etc",
        "/lake/./clicks",
        "/lake//clicks",
        "s3a://lake/../other/x",
        "s3a://lake",
        "s3a://lake/",
        "s3a:///lake/clicks",
        "s3a://",
        "s3a://lake//clicks",
        "hdfs://lake/clicks",
        "gs://lake/clicks",
        "http://lake/clicks",
        "S3A://lake/clicks",
        "/lake/*",
        "/lake/a?",
        "/lake/{a,b}",
        "/lake/[ab]",
        "/lake/a\\b",
        "/lake/a\n",
        "/lake/a\0",
        "/lake/a\tb",
        "/lake/a#b",
        "/lake/a`b",
    ],
)
def test_hostile_paths(text: str) -> None:
    """Each of these is read as another place by some reader: Hadoop, delta-rs, SQL or a shell."""
    with pytest.raises(ValidationError):
        PATH.validate_python(text)


@pytest.mark.parametrize(
    ("text", "name", "expression", "source"),
    [
        ("country", "country", None, "country"),
        ("hours(ts)", "ts_hour", "date_format(ts, 'yyyy-MM-dd-HH')", "ts"),
        ("days( ts )", "ts_day", "CAST(ts AS DATE)", "ts"),
        (
            "hours(_kafka_timestamp)",
            "kafka_timestamp_hour",
            "date_format(_kafka_timestamp, 'yyyy-MM-dd-HH')",
            "_kafka_timestamp",
        ),
    ],
)
def test_partition_transforms(text: str, name: str, expression: str | None, source: str) -> None:
    """Delta derives partition filters from just these expressions."""
    column = PartitionColumn.parse(text)
    assert (column.name, column.expression, column.source) == (name, expression, source)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hours()",
        "hour(ts)",
        "months(ts)",
        "hours(ts",
        "hours(ts), x",
        "hours(a.b)",
        "ts; DROP TABLE x",
        "hours(ts) --",
        "hours(hours(ts))",
        "a-b",
        "'a'",
    ],
)
def test_no_partition_transforms(text: str) -> None:
    """The text ends up in SQL: only what is known passes."""
    with pytest.raises(ValueError, match="is not a column, hours"):
        PartitionColumn.parse(text)
