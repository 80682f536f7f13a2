"""What `check` can find, what docs/check.md says of it and what tests provoke: the same list."""

from __future__ import annotations

import re
from pathlib import Path

from ingest_platform.maintain.preflight.kinds import Group, Kind

TESTS = Path(__file__).parents[2]
DOCS = TESTS.parents[1] / "docs" / "check.md"

PROVOKING = (
    *sorted(Path(__file__).parent.glob("test_*.py")),
    TESTS / "cli" / "test_check.py",
    TESTS / "cli" / "test_alerts.py",
)


def test_every_finding_is_documented_once_and_in_its_group():
    text = DOCS.read_text()
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == list(Group)
    documented = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(documented) == sorted(kind for kind in Kind if kind is not Kind.OK)


def test_every_finding_is_provoked():
    named = {
        name for file in PROVOKING for name in re.findall(r"\bKind\.([A-Z_]\w+)", file.read_text())
    }
    assert {kind.name for kind in Kind} <= named
