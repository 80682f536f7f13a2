"""Python, Java, Spark, Delta and jars: real files and programs that do not fit each other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from ingest_platform.maintain.preflight.executors import check_executors
from ingest_platform.maintain.preflight.findings import exit_code
from ingest_platform.maintain.preflight.jar_fit import artifact_of, name_misfits
from ingest_platform.maintain.preflight.kinds import Kind, Level
from ingest_platform.maintain.preflight.user_jars import check_user_jars
from ingest_platform.maintain.preflight.versions import check_machine
from ingest_platform.spark.installed import installed_spark, spark_jars_dir
from ingest_platform.spark.jar_lock import JarLock, load_lock
from ingest_platform_tests.unit.maintain.preflight.found import kinds, only, problems, spec_of

HERE = sys.version_info[:2]


@pytest.mark.slow  # needs Java and the jars
def test_this_machine_fits_its_lock():
    """The lock and the environment that the tests run in were made for each other."""
    bad = [f for f in check_machine(os.environ, HERE) if f.level is Level.ERROR]
    assert bad == []


def test_a_wrong_python():
    found = problems(check_machine(os.environ, (3, 10)))
    assert found[0].kind is Kind.PYTHON
    assert "Python 3.10 is not one of" in found[0].what


def test_a_java_that_is_too_old(tmp_path):
    """`java` of an old image comes first on the PATH."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    checked = check_machine({"PATH": str(java.parent)}, HERE, jvm_folder=tmp_path / "none")
    found = {finding.kind: finding for finding in problems(checked)}
    assert "is Java 8" in found[Kind.JAVA].what
    assert found[Kind.JAVA].exit_code == 3


def test_a_lock_for_other_versions_is_refused_with_both_sides(tmp_path):
    lock = load_lock()
    text = lock.source.read_text().replace("delta-spark_4.2_2.13", "delta-spark_4.0_2.12")
    other = tmp_path / "jars.lock.toml"
    other.write_text(text)
    found = problems(check_machine(os.environ, HERE, load_lock(other)))
    finding = next(f for f in found if f.kind is Kind.VERSIONS)
    assert "for Spark 4.0, but pyspark is 4.2.0" in finding.what
    assert "Scala 2.12, but Spark runs Scala 2.13" in finding.what
    assert exit_code(found) == 3


def test_a_lock_is_not_needed_to_say_that_there_is_none(tmp_path):
    empty = JarLock((), tmp_path / "none")
    assert exit_code(check_machine(os.environ, HERE, empty)) == 3


@pytest.mark.slow  # needs Java and the jars
def test_jars_that_are_not_downloaded_yet_are_a_warning(tmp_path):
    environ = {**os.environ, "INGEST_JAR_CACHE": str(tmp_path)}
    finding = only(check_machine(environ, HERE), Kind.JARS_NOT_CACHED)
    assert finding.level is Level.WARNING


ASK = """
import os, sys
from ingest_platform.maintain.preflight.versions import check_machine
for finding in check_machine(os.environ, sys.version_info[:2]):
    print(finding.level, finding.kind, finding.what)
"""


@pytest.fixture
def own_spark(tmp_path) -> Path:
    """A pyspark installation of this test's own: links to the real one's jars."""
    wheel = metadata.distribution("pyspark")
    record = Path(str(wheel.locate_file(""))) / f"pyspark-{wheel.version}.dist-info"
    shutil.copytree(record, tmp_path / record.name)
    jars = tmp_path / "pyspark" / "jars"
    jars.mkdir(parents=True)
    (tmp_path / "pyspark" / "__init__.py").touch()
    for jar in spark_jars_dir({}).glob("*.jar"):
        (jars / jar.name).symlink_to(jar)
    return tmp_path


def test_jars_that_someone_copied_into_sparks_folder(own_spark):
    """The old way to add a dependency; one is for another Scala."""
    for name in ("mine-1.0.jar", "delta-spark_4.0_2.12-4.0.0.jar"):
        (own_spark / "pyspark" / "jars" / name).touch()
    asked = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "PYTHONPATH": str(own_spark)},
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line.split(maxsplit=3) for line in asked.stdout.splitlines()]
    by_kind = {(level, kind, jar) for level, kind, jar, _ in (t for t in told if len(t) == 4)}
    assert ("warning", Kind.JAR_IN_SPARK, "mine-1.0.jar") in by_kind
    assert ("error", Kind.JAR_VERSION, "delta-spark_4.0_2.12-4.0.0.jar") in by_kind
    assert len([kind for _, kind, _ in by_kind if kind == Kind.JAR_IN_SPARK]) == 2


# Of an older Spark on purpose: there is none for this one, and they were tried with it.
OLDER = {"spark-token-provider-kafka-0-10_2.13", "spark-hadoop-cloud_2.13"}


# --- a spec's own jars -----------------------------------------------------------------------


def jar_at(path: Path, *classes: str) -> str:
    """A jar with some (empty) classes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in classes:
            archive.writestr(f"{name.replace('.', '/')}.class", b"")
    return str(path)


def of_jars(*jars: str, setting: str = "spark.driver.extraClassPath", **spark: str):
    """The findings about a spec that adds these."""
    separator = "," if setting == "spark.jars" else ":"
    conf = {setting: separator.join(jars)}
    return check_user_jars(spec_of(spark={"conf": conf, **spark}), os.environ)


def test_a_jar_of_ones_own_is_fine(tmp_path):
    mine = jar_at(tmp_path / "mine-1.0.jar", "com.example.Mine", "module-info")
    assert list(of_jars(mine)) == []
    assert list(of_jars(mine, "hdfs://elsewhere/x.jar", setting="spark.jars")) == []
    assert list(check_user_jars(spec_of(), os.environ)) == []


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("util_2.12-1.0.jar", "is for Scala 2.12, but Spark runs Scala 2.13"),
        ("iceberg-spark-runtime-4.0_2.13-1.10.0.jar", "is for Spark 4.0, but Spark is 4.2.0"),
        ("spark-avro_2.13-4.1.1.jar", "is for Spark 4.1, but Spark is 4.2.0"),
    ],
)
def test_a_jar_for_another_scala_or_spark(tmp_path, name, what):
    finding = only(of_jars(jar_at(tmp_path / name)), Kind.JAR_VERSION)
    assert what in finding.what
    assert "_2.13" in finding.remedy


def test_a_hadoop_module_of_another_version(tmp_path):
    jar = jar_at(tmp_path / "hadoop-azure-3.3.4.jar")
    assert "is of Hadoop 3.3.4, but Spark has 3.5.0" in only(of_jars(jar), Kind.JAR_VERSION).what


@pytest.mark.parametrize("name", ["janino-3.0.0.jar", "kafka-clients-3.4.0.jar"])
def test_a_jar_that_spark_or_the_lock_has_already(tmp_path, name):
    """By name: another version of the same library."""
    finding = only(of_jars(jar_at(tmp_path / name), setting="spark.jars"), Kind.JAR_SHADOWS)
    assert "itself" in finding.what
    assert finding.exit_code == 2


def test_a_fat_jar_that_brings_sparks_own_classes_along(tmp_path):
    """Built without `provided`: its name tells nothing, its directory does."""
    fat = jar_at(
        tmp_path / "job-assembly-1.0.jar",
        "com.example.Job",
        "org.apache.spark.SparkContext",
        "org.apache.hadoop.fs.Path",
    )
    finding = only(of_jars(fat), Kind.JAR_SHADOWS)
    assert "2 of whose classes are in hadoop-client-api-3.5.0.jar, spark-core_2.13" in finding.what
    assert "provided" in finding.remedy


def test_jars_that_are_not_there():
    finding = only(of_jars("/no/such.jar"), Kind.JAR_MISSING)
    assert finding.level is Level.ERROR
    elsewhere = only(of_jars("/no/such.jar", master="spark://host:7077"), Kind.JAR_MISSING)
    assert elsewhere.level is Level.WARNING


def test_a_folder_of_jars(tmp_path):
    """As `java -cp` reads it."""
    jar_at(tmp_path / "util_2.12-1.0.jar")
    jar_at(tmp_path / "mine-1.0.jar")
    assert kinds(of_jars(f"{tmp_path}/*")) == {Kind.JAR_VERSION}


def test_packages_are_not_locked():
    spec = spec_of(spark={"conf": {"spark.jars.packages": "a:b:1"}})
    assert "a:b:1" in only(check_user_jars(spec, os.environ), Kind.JAR_PACKAGES).what


def test_every_locked_jar_fits_by_its_name():
    """The rules of names would otherwise refuse what is known to work."""
    installed = installed_spark(os.environ)
    for jar in load_lock().of("spark"):
        name = Path(jar.path).name
        assert artifact_of(name) == jar.artifact
        if jar.artifact not in OLDER:
            assert list(name_misfits(name, installed)) == [], name


# --- executors ---------------------------------------------------------------------------------


def test_another_python_on_the_executors(tmp_path):
    other = tmp_path / "python3.9"
    other.write_text("#!/bin/sh\necho 3.9\n")
    other.chmod(0o755)
    spec = spec_of(spark={"conf": {"spark.pyspark.python": str(other)}})
    finding = only(check_executors(spec, {}, (3, 11)), Kind.EXECUTORS_PYTHON)
    assert finding.what == f"executors use Python 3.9 ({other}), the driver 3.11"
    assert [f.level for f in check_executors(spec, {}, (3, 9))] == [Level.OK]


def test_executors_whose_python_nobody_named():
    spec = spec_of(spark={"master": "spark://host:7077"})
    assert only(check_executors(spec, {}, (3, 11)), Kind.EXECUTORS_PYTHON).level is Level.WARNING
    finding = only(
        check_executors(spec, {"PYSPARK_PYTHON": "/no/such/python"}, (3, 11)),
        Kind.EXECUTORS_PYTHON,
    )
    assert "cannot be run here" in finding.what
