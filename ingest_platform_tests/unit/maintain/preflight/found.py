"""What checks found, and specs to find it in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ingest_platform.maintain.preflight.findings import Finding
from ingest_platform.maintain.preflight.kinds import Kind, Level
from ingest_platform.spec import StreamSpec


def spec_of(name: str = "clicks", **sections: Any) -> StreamSpec:
    """A spec with some sections' fields changed: `spec_of(table={"path": ...}, trigger="5m")`."""
    base: dict[str, Any] = {
        "name": name,
        "source": {"topic": "t"},
        "decode": {"schema": "id STRING"},
        "table": {"path": f"s3a://lake/tables/{name}"},
    }
    for section, value in sections.items():
        base[section] = {**base.get(section, {}), **value} if isinstance(value, dict) else value
    return StreamSpec.model_validate(base)


def problems(findings: Iterable[Finding]) -> list[Finding]:
    """What is not well; every one of them must be complete."""
    bad = [f for f in findings if f.level is not Level.OK]
    assert all(f.what and f.why and f.remedy for f in bad)
    return bad


def only(findings: Iterable[Finding], kind: Kind) -> Finding:
    """The one problem that there is."""
    (finding,) = problems(findings)
    assert finding.kind is kind, finding
    return finding


def kinds(findings: Iterable[Finding]) -> set[Kind]:
    """Kinds of the problems."""
    return {finding.kind for finding in problems(findings)}
