"""Is the platform's LogStore the one that decides which of two commits is first?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ingest_platform.errors import IngestError
from ingest_platform.maintain.preflight.findings import Finding, of_error, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind
from ingest_platform.spark.conf import SAFETY, refuse_unsafe
from ingest_platform.spark.installed import spark_jars_dir
from ingest_platform.spec import StreamSpec

_LINE = re.compile(r"\s*([^#\s=:]+)[\s=:]+(.*\S)\s*")
_WHY = "compaction, vacuum and repair write the table too: Delta's own LogStore lets them overwrite"


def check_log_store(spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look for settings that replace it, or what it rests on, in the spec and beside Spark."""
    defaults = _defaults_file(environ)
    try:
        refuse_unsafe(spec.spark.conf)
        if defaults is not None:
            refuse_unsafe(_read(defaults), str(defaults))
    except IngestError as error:
        yield of_error(Group.STORAGE, error, _WHY, spec.name, Kind.COMMITS_UNSAFE)
        return
    scheme = "s3a" if spec.table.path.startswith("s3a://") else "file"
    in_force = SAFETY[f"spark.delta.logStore.{scheme}.impl"]
    yield ok(Group.STORAGE, f"commits go through {in_force}", spec.name)


def _defaults_file(environ: Mapping[str, str]) -> Path | None:
    """The file that Spark takes defaults from, if there is one."""
    folder = environ.get("SPARK_CONF_DIR")
    try:
        found = Path(folder) if folder else spark_jars_dir(environ).parent / "conf"
    except IngestError:
        return None  # there is no Spark, which `check_machine` says
    return found / "spark-defaults.conf" if (found / "spark-defaults.conf").is_file() else None


def _read(file: Path) -> dict[str, str]:
    """Its settings, but for those that every session of the platform sets itself."""
    lines = map(_LINE.fullmatch, file.read_text(encoding="utf-8").splitlines())
    return {m[1]: m[2] for m in lines if m and m[1] not in SAFETY}
