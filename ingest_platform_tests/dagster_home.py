"""A DAGSTER_HOME with the settings that the repository's own deployment has."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import dagster as dg

REPOSITORY: Final = Path(__file__).parents[1]


def make_home(folder: Path) -> Path:
    """Make it; the folder must not be there yet."""
    folder.mkdir()
    shutil.copy(REPOSITORY / "dagster.yaml", folder)
    return folder


def make_instance(folder: Path) -> dg.DagsterInstance:
    """A real instance, on SQLite, with a home of its own; to be entered."""
    return dg.DagsterInstance.from_config(str(make_home(folder)))
