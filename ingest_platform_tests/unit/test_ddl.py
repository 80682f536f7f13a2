"""Columns of DDL texts, without a JVM."""

from __future__ import annotations

import pytest

from ingest_platform.spec.ddl import columns


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("id BIGINT", [("id", "BIGINT")]),
        ("id: BIGINT, b INT", [("id", "BIGINT"), ("b", "INT")]),
        (
            "a STRUCT<x: INT, y: ARRAY<STRING>>, m MAP<STRING, DECIMAL(10, 2)>, t TIMESTAMP",
            [
                ("a", "STRUCT<x: INT, y: ARRAY<STRING>>"),
                ("m", "MAP<STRING, DECIMAL(10, 2)>"),
                ("t", "TIMESTAMP"),
            ],
        ),
        (
            "`odd, name` STRING COMMENT 'a, b', `tick``ed` INT NOT NULL,\n  last DATE",
            [("odd, name", "STRING"), ("tick`ed", "INT"), ("last", "DATE")],
        ),
        ("", []),
    ],
)
def test_columns(ddl, expected):
    assert columns(ddl) == expected
