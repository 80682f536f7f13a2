"""Compile the platform's Java, its LogStores and functions, with the compiler that Spark brings.

Spark generates code with Janino, so a runtime without a JDK is enough and the platform ships
source that can be reviewed instead of a binary.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ingest_platform.errors import JarLockError
from ingest_platform.spark.java import Java

LOGSTORE_CLASS = "ingest.platform.ConditionalPutLogStore"
LOCAL_LOGSTORE_CLASS = "ingest.platform.LinkLogStore"

FUNCTION_CATALOG_CLASS = "ingest.platform.JsonFunctions"

LOCAL_FILES_CLASS = "ingest.platform.PosixFileSystem"
LOCAL_CONTEXT_CLASS = "ingest.platform.PosixContext"

SOURCES = sorted(Path(__file__).parent.parent.glob("*/*.java"))

_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
_COMPILER_JARS = ("janino-*.jar", "commons-compiler-*.jar")
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def ensure_logstore_jar(
    *, cache_folder: Path, java: Java, spark_jars: Path, locked: Sequence[Path]
) -> Path:
    """The compiled LogStores; compiled now if this source was not yet, which takes about 1 s.

    The jar's name holds the hash of all that went into it, so a new source, Delta or Spark gets a
    new jar, and processes that compile at the same time replace each other's identical result.

    Args:
        cache_folder: Where to keep it.
        java: Runs the compiler.
        spark_jars: Spark's own jars, with Janino and Hadoop among them.
        locked: The locked jars, with those of Delta's log and of S3 among them.

    Raises:
        JarLockError: It does not compile, or Spark's jars lack the compiler.
    """
    jars = [*spark_jars_for_compiler(spark_jars), *locked]
    digest = _digest(jars)
    jar = cache_folder / f"ingest-logstores-{digest[:16]}.jar"
    if not jar.is_file():
        cache_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder, prefix=".compile-") as scratch:
            compile_java(SOURCES, Path(scratch), java=java, jars=jars)
            packed = pack(Path(scratch), Path(scratch) / "out.jar")
            packed.replace(jar)
    return jar


def spark_jars_for_compiler(spark_jars: Path) -> list[Path]:
    """Spark's own jars: the compiler, and all that it compiles against.

    All of them, since it resolves the type of every field and method of each class that it meets.

    Raises:
        JarLockError: The compiler is not there.
    """
    for pattern in _COMPILER_JARS:
        _require(spark_jars, pattern)
    return sorted(spark_jars.glob("*.jar"))


def compile_java(sources: Sequence[Path], out: Path, *, java: Java, jars: Sequence[Path]) -> None:
    """Compile `sources` into class files below `out`.

    Args:
        sources: Java files, in the subset of the language that Janino knows.
        out: Folder that is there.
        java: Runs the compiler.
        jars: The compiler and all that the sources refer to.

    Raises:
        JarLockError: The compiler reports an error; its words are in the message.
    """
    class_path = ":".join(str(jar) for jar in jars)
    command = [str(java.executable), "-cp", class_path, _COMPILER, "-d", str(out)]
    command += ["-classpath", class_path, *(str(s) for s in sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    # The compiler reports some failures without an exit code, so its product is what counts.
    missing = [s for s in sources if not list(out.rglob(f"{s.stem}.class"))]
    if done.returncode or missing:
        raise JarLockError(
            f"Java source does not compile: {(done.stderr or done.stdout).strip()[-2000:]}",
            where=", ".join(str(s) for s in sources),
            remedy="check that pyspark and delta-spark are the locked versions (`uv sync`)",
        )


def pack(classes: Path, jar: Path) -> Path:
    """Pack class files into a jar, byte for byte the same for the same classes."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(classes.rglob("*.class")):
            name = file.relative_to(classes).as_posix()
            out.writestr(zipfile.ZipInfo(name, _ZIP_EPOCH), file.read_bytes())
    return jar


def _require(spark_jars: Path, pattern: str) -> None:
    if not any(spark_jars.glob(pattern)):
        raise JarLockError(
            f"no {pattern} among Spark's own jars",
            where=str(spark_jars),
            remedy="install a whole Spark: `uv sync --reinstall-package pyspark`",
        )


def _digest(jars: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for source in SOURCES:
        digest.update(source.read_bytes())
    # Jar names hold their versions; hashing 40 MB of content would slow every start for nothing.
    for jar in jars:
        digest.update(jar.name.encode())
    return digest.hexdigest()
