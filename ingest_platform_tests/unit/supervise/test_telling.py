"""Which verdicts become events: few, and never too late."""

from __future__ import annotations

import json
from datetime import timedelta

from ingest_platform.supervise.balance import Flaw
from ingest_platform.supervise.checks import CheckResult, Level
from ingest_platform.supervise.memory import Memory
from ingest_platform.supervise.rejects import Rejects
from ingest_platform.supervise.telling import Checked
from ingest_platform_tests.factories import NOW

MINUTE = timedelta(minutes=1)


def told(levels: list[int], every: timedelta = MINUTE) -> list[int]:
    """Minutes at which a check with these levels is told."""
    checked, out = Checked(), []
    for i, level in enumerate(levels):
        due, checked = checked.tell([CheckResult("lag", Level(level), "")], NOW + i * every)
        out += [i] if due else []
        stored = Memory(checked=checked).to_cursor()
        checked = Memory.from_cursor(stored).checked
    return out


def test_first_and_worse_at_once():
    assert told([0, 0, 1, 2, 2]) == [0, 2, 3]


def test_better_only_when_it_has_lasted():
    assert told([0, 1, *[0] * 20]) == [0, 1, 12]


def test_swinging_around_the_limit_is_told_once():
    assert told([0, *[1, 0] * 30]) == [0, 1]


def test_unchanged_verdict_is_repeated_every_six_hours():
    assert told([0] * 24, timedelta(hours=1)) == [0, 6, 12, 18]


def test_flaw_survives_the_cursor():
    checked = Checked().looked(NOW, 17, Flaw("s", "gap"))
    assert Memory.from_cursor(Memory(checked=checked).to_cursor()).checked == checked


def test_cursor_of_an_earlier_version_keeps_what_it_knows():
    """An upgrade must not forget a driver's baseline."""
    text = Memory().to_cursor()
    raw = json.loads(text)
    del raw["checked"], raw["rejects"]
    raw["reported"]["version"] = 9
    assert Memory.from_cursor(json.dumps(raw)).reported.version == 9


def test_table_is_looked_at_once_per_period_also_after_the_clock_was_set_back():
    checked = Checked().looked(NOW, 1, None)
    assert not checked.look_due(5 * MINUTE, NOW + 4 * MINUTE)
    assert checked.look_due(5 * MINUTE, NOW + 5 * MINUTE)
    assert checked.look_due(5 * MINUTE, NOW - timedelta(hours=1))


def test_quarantine_is_reported_once_an_hour_with_all_since():
    rejects = Rejects()
    assert not rejects.due(NOW)
    rejects = rejects.more(1, 10)
    assert rejects.due(NOW)
    rejects = rejects.reported(NOW).more(2, 20).more(3, 30)
    assert not rejects.due(NOW + 59 * MINUTE)
    assert rejects.due(NOW + 60 * MINUTE)
    assert (rejects.count, rejects.records) == (5, 50)
