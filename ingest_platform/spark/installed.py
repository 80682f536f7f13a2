"""The Spark that is installed, and whether the jar lock fits it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from ingest_platform.errors import JarLockError
from ingest_platform.spark.jar_lock import JarLock

_JAR_NAME = re.compile(r"(?P<artifact>.+?)-(?P<version>\d.*)\.jar")


@dataclass(frozen=True)
class InstalledSpark:
    """Versions that the installed packages and Spark's own jars directory show.

    Attributes:
        jars_dir: Spark's own jars.
        pyspark: Version of the wheel.
        delta_spark: Version of the `delta-spark` wheel.
        spark: Version of Spark's own jars; differs from `pyspark` when SPARK_HOME points elsewhere.
        scala: Scala suffix of Spark's jars, such as `2.13`.
        hadoop: Version of the bundled `hadoop-client-api`.
        artifacts: Version by artifact of every jar in `jars_dir`.
    """

    jars_dir: Path
    pyspark: str
    delta_spark: str
    spark: str
    scala: str
    hadoop: str
    artifacts: Mapping[str, str]


def spark_jars_dir(env: Mapping[str, str]) -> Path:
    """Spark's own jars: below SPARK_HOME where it is set, as PySpark itself decides.

    Raises:
        JarLockError: There is no such directory.
    """
    spec = util.find_spec("pyspark")
    packaged = (
        Path(next(iter(spec.submodule_search_locations)))
        if (spec and spec.submodule_search_locations)
        else Path("pyspark")
    )
    jars = Path(env.get("SPARK_HOME") or packaged) / "jars"
    if not jars.is_dir():
        raise JarLockError(
            "Spark's own jars are not there",
            where=str(jars),
            remedy="unset SPARK_HOME, or install pyspark with `uv sync`",
        )
    return jars


def installed_spark(env: Mapping[str, str]) -> InstalledSpark:
    """Find the versions that Spark would run with in this environment.

    Raises:
        JarLockError: pyspark or delta-spark is not installed, or the jars directory is not Spark's.
    """
    jars_dir = spark_jars_dir(env)
    artifacts = {
        m["artifact"]: m["version"]
        for jar in sorted(jars_dir.glob("*.jar"))
        if (m := _JAR_NAME.fullmatch(jar.name))
    }
    core = next((a for a in artifacts if a.startswith("spark-core_")), None)
    if core is None or "hadoop-client-api" not in artifacts:
        raise JarLockError(
            "no spark-core or hadoop-client-api among Spark's own jars",
            where=str(jars_dir),
            remedy="install a whole Spark distribution: `uv sync --reinstall-package pyspark`",
        )
    return InstalledSpark(
        jars_dir=jars_dir,
        pyspark=_wheel_version("pyspark"),
        delta_spark=_wheel_version("delta-spark"),
        spark=artifacts[core],
        scala=core.removeprefix("spark-core_"),
        hadoop=artifacts["hadoop-client-api"],
        artifacts=artifacts,
    )


def verify_against_installed(lock: JarLock, installed: InstalledSpark) -> None:
    """Refuse a lock that was made for other versions than those installed.

    A wrong pair fails late and obscurely otherwise: NoSuchMethodError in the middle of a batch.

    Raises:
        JarLockError: Naming both sides of every mismatch.
    """
    findings = list(_mismatches(lock, installed))
    if findings:
        raise JarLockError(
            "the jar lock does not fit the installed packages: " + "; ".join(findings),
            where=f"{lock.source} against {installed.jars_dir}",
            remedy="run `uv sync` to install the versions that uv.lock pins, or change both locks "
            "together",
        )


def _mismatches(lock: JarLock, installed: InstalledSpark) -> Iterator[str]:
    if minor(installed.pyspark) != minor(installed.spark):
        yield f"pyspark is {installed.pyspark}, but Spark's own jars are {installed.spark}"
    for jar in lock.of("spark"):
        scala = re.search(r"_(2\.\d+|3)$", jar.artifact)
        if scala and scala[1] != installed.scala:
            yield f"{jar.maven} is for Scala {scala[1]}, but Spark runs Scala {installed.scala}"
        if jar.artifact in installed.artifacts:
            yield (
                f"{jar.maven} would shadow {jar.artifact} {installed.artifacts[jar.artifact]} "
                "of Spark itself"
            )
    yield from _delta_mismatches(lock, installed)
    yield from _version_mismatches(lock, installed)


def _delta_mismatches(lock: JarLock, installed: InstalledSpark) -> Iterator[str]:
    delta = lock.find("delta-spark")
    if delta is None:
        yield f"no delta-spark jar is locked, but the delta-spark wheel is {installed.delta_spark}"
        return
    built_for = re.match(r"delta-spark_(\d+\.\d+)_", delta.artifact)
    if built_for and built_for[1] != minor(installed.pyspark):
        yield f"{delta.maven} is for Spark {built_for[1]}, but pyspark is {installed.pyspark}"
    for jar in (delta, lock.find("delta-storage")):
        if jar and jar.version != installed.delta_spark:
            yield f"{jar.maven} is locked, but the delta-spark wheel is {installed.delta_spark}"


def _version_mismatches(lock: JarLock, installed: InstalledSpark) -> Iterator[str]:
    kafka = lock.find("spark-sql-kafka-0-10")
    if kafka is None or minor(kafka.version) != minor(installed.spark):
        locked = kafka.maven if kafka else "no spark-sql-kafka-0-10 jar"
        yield f"{locked} is locked, but Spark is {installed.spark}"
    s3a = lock.find("hadoop-aws")
    if s3a is None or s3a.version != installed.hadoop:
        locked = s3a.maven if s3a else "no hadoop-aws jar"
        yield f"{locked} is locked, but Spark bundles hadoop-client-api {installed.hadoop}"


def minor(version: str) -> str:
    """`4.2` of `4.2.0`."""
    return ".".join(version.split(".")[:2])


def _wheel_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as e:
        raise JarLockError(
            f"the Python package {package} is not installed",
            remedy="run `uv sync` in the project's folder",
        ) from e
