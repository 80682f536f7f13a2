"""One Spark session: locked jars, the platform's LogStore, JVM diagnostics, quiet logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from ingest_platform.errors import EnvironmentFault
from ingest_platform.spark import class_archive
from ingest_platform.spark.class_archive import archive_file
from ingest_platform.spark.classpath import classpath
from ingest_platform.spark.conf import refuse_unsafe, session_conf
from ingest_platform.spark.installed import spark_jars_dir
from ingest_platform.spark.jars import JarCache
from ingest_platform.spark.java import find_java
from ingest_platform.spec import SparkSpec, StorageEnvironment

# Pauses of a quarter second matter less here than CPU and memory: G1 takes more of both
# (docs/performance.md). The rest is what a night watch needs afterwards.
JVM_OPTIONS = (
    "-XX:+UseParallelGC",
    # A driver's classes take some 200 MB. On the way there the JVM stops for a full collection at
    # 21 MB, its default, and each time that it has raised this mark: 0.3 s of a start with a class
    # archive, 0.5 s without.
    "-XX:MetaspaceSize=256m",
    "-XX:+ExitOnOutOfMemoryError",
    # Spark looks for an interruption in the whole trace of a failed batch with a regular expression
    # that recurses by the character (StreamExecution.PROXY_ERROR).
    "-Xss4m",
    "-Duser.timezone=UTC",
    "-Dfile.encoding=UTF-8",
)
_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")


@contextmanager
def open_session(
    spark: SparkSpec,
    storage: StorageEnvironment,
    *,
    app_name: str,
    environ: Mapping[str, str],
    on_s3: bool,
    jvm_options: Sequence[str] = (),
) -> Iterator[SparkSession]:
    """Start a session, and stop it with its JVM's query threads when the block ends.

    Args:
        spark: Master, cores, memory, the user's settings.
        storage: Endpoint and credentials of S3.
        app_name: Shown in the Spark UI and as Kafka's client id prefix.
        environ: Where Java and the jar cache are looked for.
        on_s3: Whether any path of this session lies on S3.
        jvm_options: Further options of the driver's JVM.

    Raises:
        JavaNotFoundError, JarLockError: The machine is not set up.
        SpecError: The settings are unsafe.
        EnvironmentFault: The JVM did not start.
    """
    java = find_java(environ)
    jars = classpath(environ, java=java)
    conf = session_conf(spark, storage, jars, on_s3=on_s3)
    archive = archive_file(JarCache.from_env(environ).folder, java, jars, spark_jars_dir(environ))
    conf["spark.driver.extraJavaOptions"] = driver_java_options(
        (*JVM_OPTIONS, *class_archive.jvm_options(archive, environ), *jvm_options),
        spark.conf.get("spark.driver.extraJavaOptions", ""),
    )
    os.environ["JAVA_HOME"] = str(java.home)  # how PySpark's launcher finds it; there is no option
    builder = SparkSession.builder.appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = _start(builder)
    session.sparkContext.setLogLevel("WARN")
    try:
        _refuse_unsafe_defaults(session)
        yield session
    finally:
        with suppress(Py4JError, ConnectionError):  # its JVM ended first: there is nothing to stop
            session.stop()


def driver_java_options(platform: Sequence[str], users: str) -> str:
    """Both in one text, the user's last: of an option given twice, the JVM takes the last.

    Only of two collectors it takes neither and does not start, so the platform's own gives way.
    """
    if _COLLECTOR.search(users):
        platform = [option for option in platform if not _COLLECTOR.fullmatch(option)]
    return " ".join((*platform, users)).strip()


def _refuse_unsafe_defaults(session: SparkSession) -> None:
    """The settings in force: spark-defaults.conf and core-site.xml have their say, too."""
    context = session.sparkContext
    refuse_unsafe(dict(context.getConf().getAll()), "spark-defaults.conf")
    s3a = context._jsc.hadoopConfiguration().getPropsWithPrefix("fs.s3a.")  # pyright: ignore
    refuse_unsafe(
        {f"fs.s3a.{key}": s3a[key] for key in s3a if "create" in key or "flags" in key},
        "core-site.xml",
    )


def _start(builder: SparkSession.Builder) -> SparkSession:
    try:
        return builder.getOrCreate()
    except Exception as error:
        # Py4J and PySpark raise plain Exceptions when the JVM dies during its start.
        raise EnvironmentFault(
            f"Spark did not start: {type(error).__name__}: {str(error).splitlines()[0]}",
            where="driver's JVM",
            remedy="see the lines above in this log; often spark.driver_memory exceeds the machine",
        ) from error
