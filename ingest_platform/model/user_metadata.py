"""A commit's `userMetadata`: free text to Delta, in which the platform's commits keep a section."""

from __future__ import annotations

import json
from typing import Any, cast


def to_user_metadata(name: str, section: dict[str, Any]) -> str:
    """The text of a commit with one section, without white space: it stays in the log for good."""
    return json.dumps({name: section}, separators=(",", ":"))


def section_of(text: str | None, name: str) -> dict[str, Any] | None:
    """The section `name`; None in another writer's commit, whatever its text is."""
    if not text or f'"{name}"' not in text:
        return None
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        return None  # free text that happens to hold the word
    if not isinstance(document, dict):
        return None
    section = cast("dict[str, Any]", document).get(name)
    return cast("dict[str, Any]", section) if isinstance(section, dict) else None
