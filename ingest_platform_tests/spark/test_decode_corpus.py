"""What becomes of each kind of value: a row with the right columns, or a rejection that says why.

A decoder that guesses is worse than one that refuses: a null or a wrong number in the table is
found months later, a record in the quarantine has its bytes and a reason.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingest_platform.stream.decode import EMPTY_VALUE, NOT_UTF8, TOMBSTONE, UNDECODABLE
from ingest_platform_tests.spark.decoded import Decoded, decode_values

pytestmark = pytest.mark.slow

SCHEMA = (
    "id BIGINT, small INT, name STRING, score DOUBLE, ok BOOLEAN, price DECIMAL(6,2), "
    "ts TIMESTAMP, day DATE, tags ARRAY<STRING>, "
    "user STRUCT<id: BIGINT, geo: STRUCT<lat: DOUBLE>>, attrs MAP<STRING, STRING>"
)

NOON = "2026-01-31T12:00:00.000Z"
DEEP = b"[" * 1000 + b"]" * 1000
NESTED = "[" * 400 + "]" * 400

NOT_JSON = "not one valid JSON value"
NOT_AN_OBJECT = "not a JSON object"
MORE_FOLLOWS = "something follows the JSON object"

ROWS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "valid": (b'{"id":1,"name":"a","ok":true}', {"id": 1, "name": "a", "ok": True}),
    "no fields": (b"{}", {}),
    "explicit null": (b'{"id":null,"name":"a"}', {"name": "a"}),
    "white space around": (b' \r\n{ "id" : 1 }\n', {"id": 1}),
    "unknown fields": (b'{"id":1,"x":{"y":[1]}}', {"id": 1}),
    "other case is another field": (b'{"ID":1}', {}),
    "field twice: the last one": (b'{"id":1,"id":2}', {"id": 2}),
    "braces in a text": (b'{"name":"}{"}', {"name": "}{"}),
    "quotes in a text": (rb'{"name":"],\"end\":1}"}', {"name": '],"end":1}'}),
    "escapes": (rb'{"name":"\u00e9\n\ud83d\ude00"}', {"name": "é\n😀"}),
    "four-byte UTF-8": ('{"name":"😀"}'.encode(), {"name": "😀"}),
    "NUL in a text": (rb'{"name":"a\u0000b"}', {"name": "a\0b"}),
    "number as text column": (b'{"name":1.5}', {"name": "1.5"}),
    "object as text column, as it was": (b'{"name":{"a": 1.0}}', {"name": '{"a": 1.0}'}),
    "number as text column, as it was": (b'{"name":1.50}', {"name": "1.50"}),
    "largest BIGINT": (b'{"id":9223372036854775807}', {"id": 9223372036854775807}),
    "smallest INT": (b'{"small":-2147483648}', {"small": -2147483648}),
    "integer as DOUBLE": (b'{"score":1}', {"score": 1.0}),
    "decimal": (b'{"price":1234.5}', {"price": 1234.5}),
    "time with zone": (b'{"ts":"2026-01-31T14:00:00.000+02:00"}', {"ts": NOON}),
    "time in UTC": (b'{"ts":"2026-01-31T12:00:00Z"}', {"ts": NOON}),
    "time without zone is UTC": (b'{"ts":"2026-01-31 12:00:00"}', {"ts": NOON}),
    "seconds since 1970": (b'{"ts":1769860800}', {"ts": NOON}),
    "first day of the calendar": (b'{"day":"0001-01-01"}', {"day": "0001-01-01"}),
    "date": (b'{"day":"2026-01-31"}', {"day": "2026-01-31"}),
    "empty collections": (b'{"tags":[],"attrs":{}}', {"tags": [], "attrs": {}}),
    "empty object": (b'{"user":{}}', {"user": {}}),
    "nested": (b'{"user":{"geo":{"lat":1.5}}}', {"user": {"geo": {"lat": 1.5}}}),
    "lists in a text column": (b'{"name":%b}' % NESTED.encode(), {"name": NESTED}),
    "1 MB": (b'{"name":"%b"}' % (b"x" * 1_000_000), {"name": "x" * 1_000_000}),
}  # fmt: skip

REJECTED: dict[str, tuple[bytes | None, str, str | None]] = {
    "tombstone": (None, TOMBSTONE, None),
    "empty value": (b"", EMPTY_VALUE, None),
    "blank": (b" \n", UNDECODABLE, NOT_JSON),
    "NUL byte": (b"\0", UNDECODABLE, NOT_JSON),
    "truncated object": (b'{"id":1', UNDECODABLE, NOT_JSON),
    "truncated text": (b'{"id":1,"name":"abc', UNDECODABLE, NOT_JSON),
    "truncated number": (b'{"id":', UNDECODABLE, NOT_JSON),
    "one brace too many": (b'{"id":1}}', UNDECODABLE, MORE_FOLLOWS),
    "comma at the end": (b'{"id":1,}', UNDECODABLE, NOT_JSON),
    "leading zero": (b'{"id":01}', UNDECODABLE, NOT_JSON),
    "bare names": (b"{id:1}", UNDECODABLE, NOT_JSON),
    "comment": (b'// x\n{"id":1}', UNDECODABLE, NOT_JSON),
    "line break in a text": (b'{"name":"a\nb"}', UNDECODABLE, NOT_JSON),
    "byte order mark": (b'\xef\xbb\xbf{"id":1}', UNDECODABLE, NOT_JSON),
    "XML": (b"<id>1</id>", UNDECODABLE, NOT_JSON),
    "two objects": (b'{"id":1}{"id":2}', UNDECODABLE, MORE_FOLLOWS),
    "two lines": (b'{"id":1}\n{"id":2}\n', UNDECODABLE, MORE_FOLLOWS),
    "two objects with a comma": (b'{"id":1},{"id":2}', UNDECODABLE, MORE_FOLLOWS),
    "an object and a field": (b'{"id":1},"x":2', UNDECODABLE, MORE_FOLLOWS),
    "an object and our own mark": (b'{"id":1},"end":1', UNDECODABLE, MORE_FOLLOWS),
    "an object and a word": (b'{"id":1} ok', UNDECODABLE, MORE_FOLLOWS),
    "empty list": (b"[]", UNDECODABLE, NOT_AN_OBJECT),
    "list of one": (b'[{"id":1}]', UNDECODABLE, NOT_AN_OBJECT),
    "list of two": (b'[{"id":1},{"id":2}]', UNDECODABLE, NOT_AN_OBJECT),
    "number": (b"1", UNDECODABLE, NOT_AN_OBJECT),
    "text": (b'"x"', UNDECODABLE, NOT_AN_OBJECT),
    "null": (b"null", UNDECODABLE, NOT_AN_OBJECT),
    "true": (b"true", UNDECODABLE, NOT_AN_OBJECT),
    "text for a BIGINT": (b'{"id":"5","name":"a"}', UNDECODABLE, "id is no bigint: 5"),
    "fraction for a BIGINT": (b'{"id":1.0}', UNDECODABLE, "id is no bigint: 1.0"),
    "BIGINT too large": (b'{"id":9223372036854775808}', UNDECODABLE, "no bigint: 922337203685477"),
    "INT too large": (b'{"small":2147483648}', UNDECODABLE, "small is no int: 2147483648"),
    "decimal too large": (b'{"price":12345.67}', UNDECODABLE, "price is no decimal(6,2): 12345.67"),
    "text for a DOUBLE": (b'{"score":"1.5"}', UNDECODABLE, "score is no double: 1.5"),
    "number for a BOOLEAN": (b'{"ok":1}', UNDECODABLE, "ok is no boolean: 1"),
    "no time": (b'{"ts":"yesterday"}', UNDECODABLE, "ts is no timestamp: yesterday"),
    "empty time": (b'{"ts":""}', UNDECODABLE, "ts is no timestamp: "),
    "30th of February": (b'{"ts":"2026-02-30T00:00:00Z"}', UNDECODABLE, "ts is no timestamp"),
    "milliseconds since 1970": (b'{"ts":1769860800000}', UNDECODABLE, "timestamp: 1769860800000"),
    "year 12026": (b'{"ts":"12026-01-31T00:00:00Z"}', UNDECODABLE, "ts is no timestamp"),
    "day in year 12026": (b'{"day":"12026-01-31"}', UNDECODABLE, "day is no date: 12026-01-31"),
    "other date format": (b'{"day":"31.01.2026"}', UNDECODABLE, "day is no date: 31.01.2026"),
    "text for a list": (b'{"tags":"a"}', UNDECODABLE, "tags is no array<string>: a"),
    "list for a map": (b'{"attrs":[]}', UNDECODABLE, "attrs is no map<string,string>: []"),
    "list for an object": (b'{"user":[]}', UNDECODABLE, "user is no struct<"),
    "wrong type deep inside": (b'{"user":{"geo":{"lat":"n"}}}', UNDECODABLE, '{"geo":{"lat":"n"}}'),
    "two wrong types": (b'{"id":"a","ok":"b"}', UNDECODABLE, "bigint: a; ok is no boolean: b"),
    "Latin-1": (b'{"id":1,"name":"Z\xfcrich"}', NOT_UTF8, None),
    "UTF-16": ('{"id":1}'.encode("utf-16"), NOT_UTF8, None),
    "surrogate in UTF-8": (b'{"name":"\xed\xa0\x80"}', NOT_UTF8, None),
    "overlong UTF-8": (b'{"name":"\xc0\xaf"}', NOT_UTF8, None),
    "1,000 objects deep": (b'{"a":' * 1000 + b"1" + b"}" * 1000, UNDECODABLE, "1,000 levels deep"),
    "1,000 lists deep": (DEEP, UNDECODABLE, NOT_AN_OBJECT),
    "1,000 lists in an unknown field": (b'{"x":%b}' % DEEP, UNDECODABLE, NOT_JSON),
    "100,000 lists, not closed": (b"[" * 100_000, UNDECODABLE, NOT_JSON),
    "number of 5,000 digits": (b'{"id":1%b}' % (b"0" * 5000), UNDECODABLE, None),
    "name of 60,000 characters": (b'{"%b":1}' % (b"x" * 60_000), UNDECODABLE, None),
    "1 MB, truncated": (b'{"name":"%b' % (b"x" * 1_000_000), UNDECODABLE, NOT_JSON),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, Decoded]:
    """The whole corpus through the decoder at once."""
    values = {name: case[0] for name, case in (ROWS | REJECTED).items()}
    decoded = decode_values(spark, list(values.values()), schema=SCHEMA)
    return dict(zip(values, decoded, strict=True))


@pytest.mark.parametrize("name", ROWS)
def test_value_becomes_a_row(name: str, outcomes: dict[str, Decoded]) -> None:
    """What is valid must not land in the quarantine, and no column may turn null on the way."""
    assert outcomes[name] == Decoded(ROWS[name][1], None, None, None, None)


@pytest.mark.parametrize("name", REJECTED)
def test_value_is_rejected(name: str, outcomes: dict[str, Decoded]) -> None:
    """Its bytes are kept unchanged, for whoever mends the producer and replays them."""
    value, reason, detail = REJECTED[name]
    outcome = outcomes[name]
    assert (outcome.row, outcome.reason, outcome.raw) == (None, reason, value)
    if detail is not None:
        assert detail in (outcome.detail or "")


def test_detail_does_not_repeat_a_large_value(spark: SparkSession) -> None:
    """The quarantine has the raw bytes already; a column of details must stay readable."""
    [outcome] = decode_values(spark, [b'{"id":"%b"}' % (b"x" * 10_000)], schema="id BIGINT")
    assert outcome.detail == f"id is no bigint: {'x' * 80}"


def test_timestamp_format_of_the_spec(spark: SparkSession) -> None:
    """Only that format is accepted then: a looser one would hide a producer's mistake."""
    values = [b'{"ts":"31.01.2026 12:00"}', b'{"ts":"2026-01-31T12:00:00Z"}']
    right, wrong = decode_values(
        spark, values, schema="ts TIMESTAMP", timestamp_format="dd.MM.yyyy HH:mm"
    )
    assert right.row == {"ts": "2026-01-31T12:00:00.000Z"}
    assert wrong.reason == UNDECODABLE


def test_column_names_that_need_quotes(spark: SparkSession) -> None:
    """Fields of real feeds are called `user-id` and `a.b`; they must not be taken for paths."""
    values = [b'{"user-id":1,"a.b":2,"select":3}']
    [outcome] = decode_values(spark, values, schema="`user-id` INT, `a.b` INT, `select` INT")
    assert outcome.row == {"user-id": 1, "a.b": 2, "select": 3}
