"""Columns of a DDL text, for display: no JVM, so no check that Spark accepts the types."""

from __future__ import annotations

import re

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*:?\s*")
_CONSTRAINTS = re.compile(r"\s+(NOT\s+NULL|COMMENT\b|DEFAULT\b|GENERATED\b).*", re.I | re.S)


def columns(ddl: str) -> list[tuple[str, str]]:
    """`(name, type)` of each column of `id BIGINT, tags ARRAY<STRING> NOT NULL`, in order."""
    found: list[tuple[str, str]] = []
    for part in _split(ddl):
        match = _NAME.match(part)
        if match:
            name = match[1].replace("``", "`") if match[1] else match[2]
            found.append((name, _CONSTRAINTS.sub("", part[match.end() :]).strip()))
    return found


def _split(ddl: str) -> list[str]:
    """Split at the commas outside of brackets and quotes."""
    parts, depth, quote, start = list[str](), 0, "", 0
    for index, char in enumerate(ddl):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(ddl[start:index])
            start = index + 1
    return [part for part in [*parts, ddl[start:]] if part.strip()]
