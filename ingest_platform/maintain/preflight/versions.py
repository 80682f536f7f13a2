"""Do Python, Java, pyspark, Delta and the jars fit together?

A wrong pair shows itself late otherwise, as a `NoSuchMethodError` in the middle of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from ingest_platform.errors import IngestError
from ingest_platform.maintain.preflight.findings import Finding, of_error, ok
from ingest_platform.maintain.preflight.jar_fit import WHY_JARS, name_misfits
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.spark.installed import (
    InstalledSpark,
    installed_spark,
    verify_against_installed,
)
from ingest_platform.spark.jar_lock import JarLock, load_lock
from ingest_platform.spark.jars import JarCache
from ingest_platform.spark.java import JVM_FOLDER, find_java

_PYTHONS = ((3, 11), (3, 13))


def check_machine(
    environ: Mapping[str, str],
    python: tuple[int, int],
    lock: JarLock | None = None,
    jvm_folder: Path = JVM_FOLDER,
) -> Iterator[Finding]:
    """What holds for every stream of this machine.

    Args:
        environ: JAVA_HOME, PATH, SPARK_HOME and INGEST_JAR_CACHE count.
        python: Major and minor version.
        lock: The platform's own if not given.
        jvm_folder: Where the distribution keeps its Java runtimes.
    """
    yield _python(python)
    yield _java(environ, jvm_folder)
    try:
        lock = lock or load_lock()
        installed = installed_spark(environ)
        yield from _added_jars(installed)
        verify_against_installed(lock, installed)
    except IngestError as error:
        yield of_error(Group.VERSIONS, error, WHY_JARS)
        return
    yield ok(
        Group.VERSIONS,
        f"pyspark {installed.pyspark}, delta-spark {installed.delta_spark}, Scala "
        f"{installed.scala}, hadoop {installed.hadoop} fit the {len(lock.of('spark'))} locked jars",
    )
    yield _cached(lock, environ)


def _python(python: tuple[int, int]) -> Finding:
    name = ".".join(map(str, python))
    if _PYTHONS[0] <= python <= _PYTHONS[1]:
        return ok(Group.VERSIONS, f"Python {name}")
    return Finding(
        Level.ERROR,
        Group.VERSIONS,
        Kind.PYTHON,
        f"Python {name} is not one of 3.11 to 3.13",
        "pyspark 4.2 and the locked packages are tested on those only",
        "make the environment anew: uv sync --python 3.11",
    )


def _java(environ: Mapping[str, str], jvm_folder: Path) -> Finding:
    try:
        java = find_java(environ, jvm_folder=jvm_folder)
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
        Kind.JARS_NOT_CACHED,
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
        for misfit in name_misfits(path.name, installed):
            yield Finding(
                Level.ERROR,
                Group.VERSIONS,
                Kind.JAR_VERSION,
                f"{path.name} in {installed.jars_dir} {misfit}",
                WHY_JARS,
                f"rm {path}",
            )
        yield Finding(
            Level.WARNING,
            Group.VERSIONS,
            Kind.JAR_IN_SPARK,
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
