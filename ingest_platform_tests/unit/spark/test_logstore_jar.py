"""The LogStores and functions are compiled on the user's machine, so that must not fail quietly."""

from __future__ import annotations

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingest_platform.errors import JarLockError
from ingest_platform.spark.classpath import classpath
from ingest_platform.spark.installed import spark_jars_dir
from ingest_platform.spark.java import Java, find_java
from ingest_platform.spark.logstore.compile import (
    compile_java,
    ensure_logstore_jar,
    spark_jars_for_compiler,
)


@pytest.fixture(scope="module")
def java() -> Java:
    return find_java(os.environ)


@pytest.fixture(scope="module")
def locked(java: Java) -> list[Path]:
    *jars, _ = classpath(os.environ, java=java)
    return jars


@pytest.mark.slow  # needs Java and the jars
def test_two_first_starts_at_once_share_one_jar(
    tmp_path: Path, java: Java, locked: list[Path]
) -> None:
    """Drivers of several tables start together on a fresh machine."""

    def ensure(_: int) -> Path:
        return ensure_logstore_jar(
            cache_folder=tmp_path,
            java=java,
            spark_jars=spark_jars_dir(os.environ),
            locked=locked,
        )

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(ensure, range(2))
    assert first == second
    assert [p.name for p in tmp_path.iterdir()] == [first.name]
    with zipfile.ZipFile(first) as jar:
        assert set(jar.namelist()) >= {
            "ingest/platform/ConditionalPutLogStore.class",
            "ingest/platform/JsonFunctions.class",
            "ingest/platform/LinkLogStore.class",
            "ingest/platform/TurnedBackException.class",
            "ingest/platform/YieldGate.class",
        }


@pytest.mark.slow  # needs Java and the jars
def test_source_that_does_not_compile_is_named(tmp_path: Path, java: Java) -> None:
    source = tmp_path / "Broken.java"
    source.write_text("public class Broken { int x = nonsense; }")
    jars = spark_jars_for_compiler(spark_jars_dir(os.environ))
    with pytest.raises(JarLockError, match="nonsense") as caught:
        compile_java([source], tmp_path, java=java, jars=jars)
    assert caught.value.where == str(source)


def test_spark_without_its_compiler_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JarLockError, match="among Spark's own jars"):
        spark_jars_for_compiler(tmp_path)
