from __future__ import annotations

import json

import numpy as np

from ingest_platform_tests.benchmarks.clicks import ClickStream
from ingest_platform_tests.benchmarks.contenders.floor import COLUMNS, parse

TIMES = np.full(2000, 1_769_860_800_000)


class Record:
    """As much of a Kafka message as the floor's parser looks at."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        return self._value


def test_the_same_seed_makes_the_same_records():
    """Contenders that run on topics of their own must get the same input."""
    assert ClickStream().messages(10, TIMES) == ClickStream().messages(10, TIMES)
    assert ClickStream().messages(10, TIMES) != ClickStream().messages(20, TIMES)


def test_records_have_the_columns_of_the_schema_and_a_realistic_size():
    values = [m["value"] for m in ClickStream().messages(0, TIMES)]
    assert {name for value in values for name in json.loads(value)} == set(COLUMNS.names)
    assert 200 <= sum(map(len, values)) / len(values) <= 250


def test_the_floor_leaves_out_exactly_the_bad_records():
    """Else the coordinates would be those of other records."""
    values = [m["value"] for m in ClickStream(bad_share=0.05).messages(0, TIMES)]
    table, good = parse([Record(value) for value in values])
    assert 0 < len(values) - len(good) < 200
    expected = [json.loads(values[i])["event_id"] for i in good]
    assert table.column("event_id").to_pylist() == expected
