"""Does Python on the executors fit the driver's? Functions of a transform run on both."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping

from ingest_platform.maintain.preflight.findings import Finding, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.spec import StreamSpec

_ASK = "import sys; print(*sys.version_info[:2], sep='.')"
_SETTINGS = ("spark.pyspark.python", "spark.executorEnv.PYSPARK_PYTHON")
_SECONDS = 20


def check_executors(
    spec: StreamSpec, environ: Mapping[str, str], python: tuple[int, int]
) -> Iterator[Finding]:
    """Compare the Python that executors are told to use with this one, by running it."""
    settings = [spec.spark.conf[key] for key in _SETTINGS if key in spec.spark.conf]
    chosen = settings[0] if settings else environ.get("PYSPARK_PYTHON")
    mine = ".".join(map(str, python))
    if chosen is None:
        if not spec.spark.master.startswith("local"):
            yield _finding(
                spec,
                Level.WARNING,
                f"nothing says which Python the executors of {spec.spark.master} use",
                f"set spark.pyspark.python to a Python {mine}, or use an image with one",
            )
        return
    theirs = _version(chosen)
    if theirs is None:
        here = spec.spark.master.startswith("local")
        yield _finding(
            spec,
            Level.ERROR if here else Level.WARNING,
            f"{chosen} cannot be run here, so its version is not known",
            f"make sure that it is a Python {mine} on every executor",
        )
    elif theirs != mine:
        yield _finding(
            spec,
            Level.ERROR,
            f"executors use Python {theirs} ({chosen}), the driver {mine}",
            f"set spark.pyspark.python to a Python {mine}",
        )
    else:
        yield ok(Group.VERSIONS, f"executors use Python {theirs} ({chosen})", spec.name)


def _version(python: str) -> str | None:
    found = shutil.which(python)
    if found is None:
        return None
    try:
        asked = subprocess.run(
            [found, "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None


def _finding(spec: StreamSpec, level: Level, what: str, remedy: str) -> Finding:
    why = "PySpark refuses to run a function on another minor version than it was made on"
    return Finding(level, Group.VERSIONS, Kind.EXECUTORS_PYTHON, what, why, remedy, spec.name)
