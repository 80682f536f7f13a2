"""Do Python, Java, pyspark, Delta and the jars fit together?

A wrong pair shows itself late otherwise, as a `NoSuchMethodError` in the middle of a batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from ingest_platform.errors import IngestError
from ingest_platform.maintain.preflight.findings import (
    USER,
    Finding,
    Group,
    Level,
    of_error,
    ok,
)
from ingest_platform.spark.installed import (
    InstalledSpark,
    installed_spark,
    verify_against_installed,
)
from ingest_platform.spark.jar_lock import JarLock, load_lock
from ingest_platform.spark.jars import JarCache
from ingest_platform.spark.java import find_java
from ingest_platform.spec import StreamSpec

_PYTHONS = ((3, 11), (3, 13))
_JAR = re.compile(r"(?P<artifact>.+?)(_(?P<scala>2\.\d+|3))?-(?P<version>\d[^-]*(-.*)?)\.jar")
_CLASS_PATH = ("spark.jars", "spark.driver.extraClassPath", "spark.executor.extraClassPath")
_WHY_JARS = "the first batch would fail with NoSuchMethodError or ClassNotFoundException"


def check_machine(
    environ: Mapping[str, str], python: tuple[int, int], lock: JarLock | None = None
) -> Iterator[Finding]:
    """What holds for every stream of this machine."""
    yield _python(python)
    yield _java(environ)
    try:
        lock = lock or load_lock()
        installed = installed_spark(environ)
        yield from _added_jars(installed)
        verify_against_installed(lock, installed)
    except IngestError as error:
        yield of_error(Group.VERSIONS, error, _WHY_JARS)
        return
    yield ok(
        Group.VERSIONS,
        f"pyspark {installed.pyspark}, delta-spark {installed.delta_spark}, Scala "
        f"{installed.scala}, hadoop {installed.hadoop} fit the {len(lock.of('spark'))} locked jars",
    )
    yield _cached(lock, environ)


def check_user_jars(spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Jars and packages that a spec adds by itself."""
    conf = spec.spark.conf
    if "spark.jars.packages" in conf:
        yield Finding(
            Level.WARNING,
            Group.VERSIONS,
            f"spark.jars.packages is {conf['spark.jars.packages']}",
            "what it brings along is neither locked nor checked, and may shadow the locked jars",
            "add the jars to ingest_platform/spark/jars.lock.toml instead",
            spec.name,
        )
    try:
        installed = installed_spark(environ)
    except IngestError:
        return  # said by `check_machine`
    for setting in _CLASS_PATH:
        for jar in re.split(r"[,:]", conf.get(setting, "")):
            yield from _user_jar(jar, setting, installed, spec.name)
    if "spark.jars" in conf:
        yield Finding(
            Level.ERROR,
            Group.VERSIONS,
            "spark.conf sets spark.jars",
            "it replaces the locked jars, among them Delta, Kafka and the safe LogStore",
            "use spark.driver.extraClassPath, or add the jars to the lock",
            spec.name,
            USER,
        )


def _python(python: tuple[int, int]) -> Finding:
    name = ".".join(map(str, python))
    if _PYTHONS[0] <= python <= _PYTHONS[1]:
        return ok(Group.VERSIONS, f"Python {name}")
    return Finding(
        Level.ERROR,
        Group.VERSIONS,
        f"Python {name} is not one of 3.11 to 3.13",
        "pyspark 4.2 and the locked packages are tested on those only",
        "make the environment anew: uv sync --python 3.11",
    )


def _java(environ: Mapping[str, str]) -> Finding:
    try:
        java = find_java(environ)
    except IngestError as error:
        return of_error(Group.VERSIONS, error, "no Spark session can start")
    return ok(Group.VERSIONS, f"Java {java.major} at {java.executable}")


def _cached(lock: JarLock, environ: Mapping[str, str]) -> Finding:
    cache = JarCache.from_env(environ)
    missing = [jar for jar in lock.of("spark") if not cache.path_of(jar).is_file()]
    if not missing:
        return ok(Group.VERSIONS, f"all jars are in {cache.folder}")
    megabytes = sum(jar.size for jar in missing) / 1e6
    return Finding(
        Level.WARNING,
        Group.VERSIONS,
        f"{len(missing)} of {len(lock.of('spark'))} jars are not in {cache.folder}",
        f"the first start downloads {megabytes:.0f} MB, and fails without a network",
        "ingest-platform jars download spark",
    )


def _added_jars(installed: InstalledSpark) -> Iterator[Finding]:
    """Jars that someone copied into Spark's own folder: the old way to add a dependency."""
    shipped = _shipped_jars(installed.jars_dir)
    if not shipped:
        return
    for path in sorted(installed.jars_dir.glob("*.jar")):
        if path.name in shipped:
            continue
        match = _JAR.fullmatch(path.name)
        if match and match["scala"] not in {None, installed.scala}:
            yield _wrong_scala(path.name, match["scala"], installed, str(installed.jars_dir))
        yield Finding(
            Level.WARNING,
            Group.VERSIONS,
            f"{path.name} was added to {installed.jars_dir}",
            "it is neither locked nor checked, and may shadow classes of Spark or Delta",
            f"rm {path}; what the platform needs is in the jar lock",
        )


def _shipped_jars(jars_dir: Path) -> set[str]:
    """Names of the jars that the pyspark wheel brought; none for a SPARK_HOME elsewhere."""
    files = metadata.distribution("pyspark").files or []
    jars = [Path(str(file.locate())) for file in files if file.suffix == ".jar"]
    here = jars_dir.resolve()
    return {jar.name for jar in jars if jar.parent.resolve() == here}


def _user_jar(jar: str, setting: str, installed: InstalledSpark, stream: str) -> Iterator[Finding]:
    match = _JAR.fullmatch(Path(jar).name)
    if match is None:
        return
    if match["scala"] not in {None, installed.scala}:
        yield _wrong_scala(Path(jar).name, match["scala"], installed, setting, stream)
    artifact = Path(jar).name.removesuffix(f"-{match['version']}.jar")
    own = installed.artifacts.get(artifact)
    if own is not None:
        yield Finding(
            Level.ERROR,
            Group.VERSIONS,
            f"{setting} names {Path(jar).name}, but Spark has {artifact} {own} itself",
            "it would shadow Spark's own classes, or be shadowed by them",
            f"remove it from {setting}",
            stream,
            USER,
        )


def _wrong_scala(
    name: str, scala: str, installed: InstalledSpark, where: str, stream: str | None = None
) -> Finding:
    return Finding(
        Level.ERROR,
        Group.VERSIONS,
        f"{name} in {where} is for Scala {scala}, but Spark runs Scala {installed.scala}",
        _WHY_JARS,
        f"take the artifact that ends in _{installed.scala}",
        stream,
        USER,
    )
