"""A deployment of streams on local paths, and a way to call the command line in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingest_platform.cli import cli


class Deployment:
    """Folder `defs/` with specs, folder `tables/` for their tables."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.defs = root / "defs"
        self.defs.mkdir()

    def table(self, name: str) -> str:
        return str(self.root / "tables" / name)

    def declare(self, name: str, extra: str = "", folder: str | None = None) -> Path:
        """Write the spec of a stream; `extra` are further lines under `attributes`."""
        path = self.defs / (folder or name) / "defs.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "type: ingest_platform.KafkaDeltaTable\n"
            "attributes:\n"
            f"  name: {name}\n"
            "  source: {topic: t}\n"
            '  decode: {schema: "id STRING"}\n'
            f"  table: {{path: {self.table(name)}}}\n{extra}"
        )
        return path


@pytest.fixture
def deployment(tmp_path, monkeypatch) -> Deployment:
    made = Deployment(tmp_path)
    monkeypatch.setenv("INGEST_DEFS", str(made.defs))
    return made


@pytest.fixture
def run() -> Callable[..., Result]:
    """`run("audit", "clicks")`: what the console script does, with stdout and stderr apart."""

    def call(*args: str) -> Result:
        return CliRunner().invoke(cli, [str(a) for a in args], catch_exceptions=False)

    return call
