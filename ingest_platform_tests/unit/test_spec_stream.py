"""The rules between the fields of one stream's spec."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from ingest_platform_tests.factories import make_spec

LAKE = "s3a://lake/clicks"


def test_defaults() -> None:
    """Name, topic, schema and path are all that a user must say."""
    spec = make_spec()
    assert spec.table.quarantine == "/lake/clicks_quarantine"
    assert spec.state_dir == "/lake/_ingest/streams/clicks"
    assert spec.source.all_topics == ("clicks",)
    assert spec.table.coordinates


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"name": "Clicks"}, "name"),
        ({"colour": "red"}, "colour: Extra inputs"),
        ({"source": {}}, "give either `topic` or `topics`"),
        ({"source": {"topic": "a", "topics": ["b"]}}, "give either `topic` or `topics`"),
        ({"source": {"topic": "a", "starting_timestamp": "2026-01-31T00:00:00"}}, "time zone"),
        ({"source": {"topic": "a", "max_offsets_per_trigger": 0}}, "greater than 0"),
        ({"source": {"topic": "a", "gaps": "ignore"}}, "gaps"),
        ({"source": {"topic": "a", "options": {"subscribe": "b"}}}, "may not set subscribe"),
        ({"source": {"topic": "a", "options": {"failondataloss": "false"}}}, "may not set fail"),
        ({"source": {"topic": "a", "options": {"startingTimestamp": "1"}}}, "may not set start"),
        ({"source": {"topic": "a", "environment_prefix": "a b"}}, "environment_prefix"),
        ({"decode": {}}, "give either `schema`"),
        ({"decode": {"schema": "id INT", "schema_file": "x"}}, "give either `schema`"),
        ({"decode": {"schema": "id INT", "unexpected_fields": "drop"}}, "unexpected_fields"),
        ({"decode": {"schema": "id INT", "tombstones": "delete"}}, "tombstones"),
        ({"table": {"path": LAKE, "auto_compaction": "on"}}, "table.auto_compaction"),
        ({"table": {"path": LAKE, "auto_compaction": True}}, "table.auto_compaction"),
        ({"transform": "os.system"}, "transform"),
        ({"transform": "os:system('x')"}, "transform"),
        ({"transform": "../x:y"}, "transform"),
        ({"table": {"path": LAKE, "partition_by": ["hours(ts"]}}, "is not a column"),
        ({"table": {"path": LAKE, "partition_by": ["a"], "cluster_by": ["b"]}}, "give either"),
        ({"table": {"path": LAKE, "cluster_by": ["a", "b", "c", "d", "e"]}}, "at most 4 items"),
        (
            {
                "table": {"path": LAKE, "cluster_by": ["a"]},
                "maintenance": {"compaction": {"z_order": ["b"]}},
            },
            "ZORDER BY",
        ),
        ({"table": {"path": LAKE, "quarantine_path": LAKE}}, "lie inside one another"),
        ({"table": {"path": LAKE, "quarantine_path": f"{LAKE}/bad"}}, "lie inside one another"),
        ({"table": {"path": LAKE}, "state_path": LAKE}, "lie inside one another"),
        ({"table": {"path": "/s/streams/clicks/t"}, "state_path": "/s"}, "inside one another"),
        ({"source": {"topic": "a", "options": {"kafka.bootstrap.servers": "x"}}}, "may not set"),
        ({"trigger": "-1s"}, "trigger"),
        ({"trigger": "25h"}, "between 0 and 24 hours"),
        ({"freshness": {"warn": "1h", "fail": "1h"}}, "warn < fail"),
        ({"freshness": {"warn": "10s"}}, "60 seconds"),
        ({"spark": {"master": "mesos://x"}}, "master"),
        ({"spark": {"driver_memory": "2 GB"}}, "driver_memory"),
    ],
)
def test_refused(change: dict[str, Any], rule: str) -> None:
    """Each of these would be found hours later, as lost data or as a driver that does not start."""
    with pytest.raises(ValidationError) as refused:
        make_spec(**change)
    text = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in refused.value.errors())
    assert rule in text


@pytest.mark.parametrize(
    ("text", "mode"), [("off", "off"), ("'off'", "off"), ("inline", "inline"), ("async", "async")]
)
def test_auto_compaction_as_people_write_it(text: str, mode: str) -> None:
    """A bare `off` is false to YAML 1.1, and must not be refused for that."""
    table = yaml.safe_load(f"{{path: {LAKE}, auto_compaction: {text}}}")
    assert make_spec(table=table).table.auto_compaction == mode
    assert make_spec().table.auto_compaction == "off"


def test_specs_are_frozen() -> None:
    """A spec is shared by threads and processes; who wants another one makes a copy."""
    with pytest.raises(ValidationError):
        make_spec().name = "other"
    with pytest.raises(ValidationError):
        make_spec().source.topic = "other"
