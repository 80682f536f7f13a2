"""The entry point that `workspace.yaml` and `dg.toml` name."""

import os
from pathlib import Path

import dagster as dg

from ingest_platform.components.resources import default_resources


@dg.definitions
def defs() -> dg.Definitions:
    """All that `ingest_platform/defs/` declares, and the resources that it needs."""
    folder = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(folder, dg.Definitions(resources=default_resources(os.environ)))
