"""Fields that the schema does not name, at any depth, under each policy of the spec.

A producer adds fields without asking. Whatever the owner of the table chose must happen then, and
no policy but `ignore` may lose a value without a word.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from ingest_platform.stream.decode import UNEXPECTED_FIELDS
from ingest_platform_tests.spark.decoded import Decoded, decode_values

pytestmark = pytest.mark.slow

SCHEMA = (
    "id BIGINT, user STRUCT<id: BIGINT, geo: STRUCT<lat: DOUBLE>>, "
    "items ARRAY<STRUCT<sku: STRING>>, by_day MAP<STRING, STRUCT<n: BIGINT>>, tags ARRAY<STRING>"
)

# What each value has beyond the schema.
VALUES: dict[str, tuple[bytes, dict[str, str | None]]] = {
    "nothing": (b'{"id":1,"user":{"id":1},"items":[{"sku":"a"}],"tags":["x"]}', {}),
    "declared columns missing": (b"{}", {}),
    "a field": (b'{"id":1,"x":"text"}', {"x": "text"}),
    "a null": (b'{"id":1,"x":null}', {"x": None}),
    "an object": (b'{"id":1,"x":{"y":[1,"2"]}}', {"x": '{"y":[1,"2"]}'}),
    "other case": (b'{"ID":1}', {"ID": "1"}),
    "in an object": (b'{"user":{"id":1,"z":2}}', {"user.z": "2"}),
    "two levels deep": (b'{"user":{"geo":{"lat":1.0,"lon":2}}}', {"user.geo.lon": "2"}),
    "in a list": (b'{"items":[{"sku":"a"},{"sku":"b","z":1}]}', {"items[1].z": "1"}),
    "in two items": (b'{"items":[{"z":1},{"z":2}]}', {"items[0].z": "1", "items[1].z": "2"}),
    "in a map": (b'{"by_day":{"mon":{"n":1,"z":2}}}', {"by_day.mon.z": "2"}),
    "in several": (b'{"x":1,"user":{"y":2}}', {"x": "1", "user.y": "2"}),
    "twice": (b'{"id":1,"x":1,"x":2}', {"x": "2"}),
    "twice in an object": (b'{"user":{"x":1,"x":2}}', {"user.x": "2"}),
    "a name with a dot": (b'{"id":1,"a.b":2}', {"a.b": "2"}),
    "an empty name": (b'{"id":1,"":2}', {"": "2"}),
    "null instead of objects": (b'{"user":null,"items":null,"by_day":null,"x":1}', {"x": "1"}),
    "null items": (b'{"items":[null,{"z":1}]}', {"items[1].z": "1"}),
}  # fmt: skip

# Names that can become columns as they are.
COLUMNS = ["a field", "a null", "an object", "twice", "null instead of objects"]


def decoded(spark: SparkSession, policy: str) -> dict[str, Decoded]:
    values = [value for value, _ in VALUES.values()]
    outcomes = decode_values(spark, values, schema=SCHEMA, unexpected_fields=policy)
    return dict(zip(VALUES, outcomes, strict=True))


def test_ignore(spark: SparkSession) -> None:
    """The default: such fields are nobody's error and cost nothing."""
    for name, outcome in decoded(spark, "ignore").items():
        assert outcome.reason is None, name
        assert outcome.unexpected is None, name


def test_rescue(spark: SparkSession) -> None:
    """Every value is found again in `_rescued_data`, under the path where it was."""
    found = {name: outcome.unexpected for name, outcome in decoded(spark, "rescue").items()}
    assert found == {name: extra for name, (_, extra) in VALUES.items()}


def test_fail(spark: SparkSession) -> None:
    """One overlooked field is one that is lost: a contract that is checked must be checked deep."""
    refused = {name: outcome.reason for name, outcome in decoded(spark, "fail").items()}
    assert refused == {
        name: UNEXPECTED_FIELDS if extra else None for name, (_, extra) in VALUES.items()
    }


def test_add_columns(spark: SparkSession) -> None:
    """What can be no column (nested, odd names, another case of one) goes to the quarantine."""
    refused = {name: outcome.reason for name, outcome in decoded(spark, "add_columns").items()}
    assert refused == {
        name: UNEXPECTED_FIELDS if extra and name not in COLUMNS else None
        for name, (_, extra) in VALUES.items()
    }


@pytest.mark.parametrize("policy", ["rescue", "add_columns", "fail"])
def test_undecodable_values_stay_undecodable(spark: SparkSession, policy: str) -> None:
    """The first thing wrong is named; a policy on fields has no say on what is no object."""
    values = [b'{"id":"no","x":1}', b"[]", b"", None, b'{"x":' * 1000, b'"\xff"']
    outcomes = decode_values(spark, values, schema="id BIGINT", unexpected_fields=policy)
    assert [o.reason for o in outcomes] == [
        "undecodable",
        "undecodable",
        "empty_value",
        "tombstone",
        "undecodable",
        "not_utf8",
    ]
