"""How programs under measurement are started: each in a folder of its own, its log beside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ingest_platform.embedded.process import ChildProcess, spawn
from ingest_platform.spark.classpath import classpath
from ingest_platform.spark.java import find_java
from ingest_platform.spec.files import COMPONENT_TYPE

PROJECT: Final = Path(__file__).parents[2]


def start(
    title: str, command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None
) -> ChildProcess:
    """Start a program in `folder`: what it spills goes away with the rest of its run."""
    own = {"SPARK_LOCAL_DIRS": str(folder / "spill"), "PYTHONPATH": str(PROJECT)}
    # Its working directory, too, where whoever attaches to its JVM leaves a file for a moment.
    return spawn(
        ["env", "-C", str(folder), *command],
        name=title,
        log=folder / "output.log",
        env={**os.environ, **own, **(variables or {})},
    )


def start_spark_script(title: str, script: Sequence[str], folder: Path) -> ChildProcess:
    """Start a plain Spark script under this Python, on the platform's Java and jars."""
    java = find_java(os.environ)
    jars = ",".join(str(jar) for jar in classpath(os.environ, java=java))
    command = [sys.executable, *script, "--jars", jars]
    return start(title, command, folder, {"JAVA_HOME": str(java.home)})


def start_driver(
    title: str,
    attributes: Mapping[str, Any],
    folder: Path,
    variables: Mapping[str, str] | None = None,
) -> ChildProcess:
    """Write a spec with these attributes, and start the platform's driver on it."""
    spec = folder / "defs.yaml"
    document = {"type": COMPONENT_TYPE, "attributes": dict(attributes)}
    spec.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    command = [sys.executable, "-m", "ingest_platform.drivers.stream", str(spec)]
    return start(
        title, command, folder, {"INGEST_LOG_DIR": str(folder / "logs"), **(variables or {})}
    )
