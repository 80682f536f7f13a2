"""What a benchmark leaves behind: `results/NAME.json`, for people and for comparison over time."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import psutil

from ingest_platform.spark.jar_lock import load_lock
from ingest_platform.spark.java import find_java
from ingest_platform_tests.benchmarks.figures import Figures
from ingest_platform_tests.benchmarks.targets import Target

FOLDER: Final = Path(__file__).parent / "results"

_PACKAGES = ("ingest-platform", "pyspark", "delta-spark", "confluent-kafka", "pyarrow")


def write_results(
    name: str,
    *,
    settings: Mapping[str, Any],
    notes: Sequence[str],
    figures: Figures,
    targets: Sequence[Target],
    series: Mapping[str, Any],
    folder: Path = FOLDER,
) -> Path:
    """Write the JSON file and return its path.

    Args:
        name: File name without ending.
        settings: Sizes, rates and times of this run.
        notes: What the figures' names mean.
        figures: All of them.
        targets: Goals, with the values measured for them.
        series: What plots are drawn from.
        folder: Made if it is not there.
    """
    document = {
        "name": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "settings": dict(settings),
        "notes": list(notes),
        "targets": [target.to_json() for target in targets],
        "figures": [figure.to_json() for figure in figures],
        "series": dict(series),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    text = json.dumps(document, indent=1)
    # Lists of numbers on one line each: a series of 200 points is not 200 lines of diff.
    text = re.sub(r"\[\s+([-\d.e,\s]+?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def machine() -> dict[str, Any]:
    """Cores, memory and CPU model: what makes figures comparable, and nothing that names a host."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Of everything that takes part."""
    found = {name: metadata.version(name) for name in _PACKAGES}
    found["python"] = platform.python_version()
    found["java"] = str(find_java(os.environ).major)
    broker = [jar.version for jar in load_lock().of("kafka") if jar.artifact.startswith("kafka_2")]
    found["kafka broker"] = broker[0] if broker else "unknown"
    found["commit"] = _commit()
    return found


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    model = re.search(r"^(?:model name|Hardware)\s*:\s*(.+)$", text, re.MULTILINE)
    return model[1].strip() if model else "unknown"


def _commit() -> str:
    """Short hash of the checkout, with a `+` if files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"
