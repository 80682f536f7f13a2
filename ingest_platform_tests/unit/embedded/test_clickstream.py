"""The demo's clicks: what the table expects, but for the share that is meant to be broken."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from ingest_platform.cli.specs import DEFS
from ingest_platform.embedded.clickstream import ClickRecord, ClickStream
from ingest_platform.spec import load_spec
from ingest_platform.spec.ddl import columns

NOW = datetime(2026, 11, 21, 12, 30, 15, 678_901, tzinfo=UTC)
TYPES = {
    "STRING": str,
    "BIGINT": int,
    "INT": int,
    "DOUBLE": float,
    "TIMESTAMP": str,
}


def records(count: int, seed: int = 1, **ratios: float) -> list[ClickRecord]:
    clicks = ClickStream(random.Random(seed), **ratios)
    return [clicks.record(NOW) for _ in range(count)]


@cache
def schema() -> dict[str, type]:
    environ = {**os.environ, "INGEST_LAKE": "s3a://lake"}
    spec = load_spec(Path(DEFS / "clicks" / "defs.yaml"), environ)
    assert spec.decode.schema_
    return {name: TYPES[kind] for name, kind in columns(spec.decode.schema_)}


def fits(value: bytes) -> bool:
    """Whether the strict reader of the table would take it."""
    try:
        event = json.loads(value.decode("utf-8"))
    except (UnicodeDecodeError, ValueError):
        return False
    expected = schema()
    return isinstance(event, dict) and all(
        event[name] is None or isinstance(event[name], kind) for name, kind in expected.items()
    )


def test_good_records_have_the_columns_of_the_table():
    """A field that the spec does not know, or a misspelt one, would silently become NULL."""
    for record in records(500, bad_ratio=0, tombstone_ratio=0):
        assert record.value is not None
        event = json.loads(record.value)
        assert set(event) == set(schema())
        assert fits(record.value)
        assert event["event_time"] == "2026-11-21T12:30:15.678Z"


def test_every_kind_of_bad_record_is_bad():
    """A "bad" record that decodes after all would make the quarantine look too good."""
    made = records(400, bad_ratio=1, tombstone_ratio=0)
    assert not any(fits(record.value) for record in made if record.value is not None)
    assert len({(record.value or b"")[:1] for record in made}) > 1


@pytest.mark.parametrize(("ratio", "low", "high"), [(0.001, 10, 32), (0.02, 340, 460)])
def test_the_share_of_bad_records_is_as_asked(ratio, low, high):
    made = records(20_000, bad_ratio=ratio, tombstone_ratio=0)
    assert low <= sum(not _parses(record) for record in made) <= high


def test_there_are_tombstones():
    made = records(2_000, bad_ratio=0, tombstone_ratio=0.01)
    assert 5 <= sum(record.value is None for record in made) <= 40


def test_the_same_seed_gives_the_same_clicks():
    assert records(200, seed=7) == records(200, seed=7)
    assert records(200, seed=7) != records(200, seed=8)


def test_clicks_look_like_a_shops():
    """Views outnumber purchases, and purchases name a product, a price and a quantity."""
    events = [json.loads(r.value) for r in records(30_000, bad_ratio=0, tombstone_ratio=0)]  # type: ignore[arg-type]
    kinds = Counter(event["event_type"] for event in events)
    assert kinds["product_view"] > kinds["add_to_cart"] > kinds["purchase"] > 0
    for event in events:
        if event["event_type"] == "purchase":
            assert event["product_id"] is not None
            assert event["price"] > 0
            assert event["quantity"] >= 1


def _parses(record: ClickRecord) -> bool:
    try:
        event = json.loads((record.value or b"").decode())
    except (UnicodeDecodeError, ValueError):
        return False
    return event["user_id"] is None or isinstance(event["user_id"], int)
