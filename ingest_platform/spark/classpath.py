"""Everything that a Spark session of the platform needs on its class path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from ingest_platform.spark.installed import installed_spark, verify_against_installed
from ingest_platform.spark.jar_lock import load_lock
from ingest_platform.spark.jars import JarCache, ensure
from ingest_platform.spark.java import Java, find_java
from ingest_platform.spark.logstore.compile import ensure_logstore_jar


def classpath(
    env: Mapping[str, str], *, java: Java | None = None, console: Console | None = None
) -> list[Path]:
    """The locked `spark` jars and the compiled LogStores, in order, for `spark.jars`.

    About 0.1 s when everything is cached; when nothing is, 34 MB are downloaded and the compiler
    runs for a second.

    Args:
        env: Environment; INGEST_JAR_CACHE, INGEST_MAVEN_URL, SPARK_HOME, JAVA_HOME and PATH count.
        java: Compiles the LogStores; looked for in `env` if not given, which costs 0.2 s.
        console: Shows progress bars while downloading; silent without one.

    Raises:
        JarLockError: The lock does not fit what is installed, or a jar cannot be had.
        JavaNotFoundError: The LogStores must be compiled and there is no Java.
        DiskFullError: The cache has no space left.
    """
    lock = load_lock()
    installed = installed_spark(env)
    verify_against_installed(lock, installed)
    cache = JarCache.from_env(env)
    jars = ensure("spark", cache=cache, lock=lock, console=console)
    logstores = ensure_logstore_jar(
        cache_folder=cache.folder / "logstore",
        java=java or find_java(env),
        spark_jars=installed.jars_dir,
        locked=jars,
    )
    return [*jars, logstores]
