"""Jars and packages that a spec adds by itself: are they there, do they fit, do they shadow?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ingest_platform.errors import IngestError
from ingest_platform.maintain.preflight.findings import USER, Finding
from ingest_platform.maintain.preflight.jar_fit import (
    WHY_JARS,
    artifact_of,
    name_misfits,
    shadowed,
)
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.spark.installed import InstalledSpark, installed_spark
from ingest_platform.spark.jar_lock import load_lock
from ingest_platform.spark.jars import JarCache
from ingest_platform.spec import StreamSpec

_CLASS_PATH = ("spark.jars", "spark.driver.extraClassPath", "spark.executor.extraClassPath")
_WHY_SHADOW = "which of the two is loaded depends on their order; the other's methods are missing"
_NAMED = 3


def check_user_jars(spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Judge what `spark.conf` puts on the class path; jars that are not local are left alone."""
    packages = spec.spark.conf.get("spark.jars.packages")
    if packages:
        yield Finding(
            Level.WARNING,
            Group.VERSIONS,
            Kind.JAR_PACKAGES,
            f"spark.jars.packages is {packages}",
            "what it brings along is neither locked nor checked, and may shadow the locked jars",
            "name the jars in spark.jars, or add them to ingest_platform/spark/jars.lock.toml",
            spec.name,
        )
    jars = [(setting, jar) for setting in _CLASS_PATH for jar in _jars(spec, setting)]
    if not jars:
        return
    try:
        provided = _Provided(environ)
    except IngestError:
        return  # said by `check_machine`
    for setting, jar in jars:
        if jar.is_file():
            yield from provided.judge(jar, setting, spec.name)
        else:
            yield _missing(spec, jar, setting)


def _jars(spec: StreamSpec, setting: str) -> Iterator[Path]:
    """The jars that one setting names; `folder/*` stands for those in the folder, as in Java."""
    separator = "," if setting == "spark.jars" else ":"
    for text in spec.spark.conf.get(setting, "").split(separator):
        name = text.strip().removeprefix("file://").removeprefix("file:")
        if re.match(r"\w+:", name) or not name:
            continue
        if name.endswith("/*"):
            yield from sorted(Path(name[:-2]).glob("*.jar"))
        elif name.endswith(".jar"):
            yield Path(name)


class _Provided:
    """What is on the class path anyway: Spark's own jars, and the locked ones."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Raises IngestError when there is no Spark, or no lock."""
        self._installed: InstalledSpark = installed_spark(environ)
        locked, cache = load_lock().of("spark"), JarCache.from_env(environ)
        self._versions = {**self._installed.artifacts, **{j.artifact: j.version for j in locked}}
        in_cache = (cache.path_of(jar) for jar in locked)
        self._jars = [*sorted(self._installed.jars_dir.glob("*.jar")), *in_cache]

    def judge(self, jar: Path, setting: str, stream: str) -> Iterator[Finding]:
        """What is wrong with one added jar."""
        place = f"{setting} names {jar}"
        for misfit in name_misfits(jar.name, self._installed):
            remedy = (
                f"take the artifact for Spark {self._installed.spark} that ends in "
                f"_{self._installed.scala}"
            )
            yield _error(Kind.JAR_VERSION, f"{place}, which {misfit}", WHY_JARS, remedy, stream)
        artifact = artifact_of(jar.name) or ""
        own = self._versions.get(artifact)
        if own is not None:
            what = f"{place}, but Spark or the jar lock has {artifact} {own} itself"
            remedy = f"remove it from {setting}"
            yield _error(Kind.JAR_SHADOWS, what, _WHY_SHADOW, remedy, stream)
            return
        yield from self._shadowed(jar, place, stream)

    def _shadowed(self, jar: Path, place: str, stream: str) -> Iterator[Finding]:
        found = shadowed(jar, self._jars)
        if found:
            most = sorted(found, key=lambda name: -found[name])
            more = f" and {len(most) - _NAMED} more" if len(most) > _NAMED else ""
            classes = sum(found.values())
            what = f"{place}, {classes} of whose classes are in {', '.join(most[:_NAMED])}{more}"
            remedy = "build it without them: scope `provided` in Maven and sbt, or shade them"
            yield _error(Kind.JAR_SHADOWS, what, _WHY_SHADOW, remedy, stream)


def _missing(spec: StreamSpec, jar: Path, setting: str) -> Finding:
    local = spec.spark.master.startswith("local")
    return Finding(
        Level.ERROR if local else Level.WARNING,
        Group.VERSIONS,
        Kind.JAR_MISSING,
        f"{setting} names {jar}, which is not there",
        "Java passes over it silently; the first use of its classes fails",
        "mend the path" if local else "make sure that it is there on every node",
        spec.name,
        USER,
    )


def _error(kind: Kind, what: str, why: str, remedy: str, stream: str) -> Finding:
    return Finding(Level.ERROR, Group.VERSIONS, kind, what, why, remedy, stream, USER)
