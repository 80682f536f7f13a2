"""A class data sharing archive: the driver's JVM maps its classes instead of loading them.

Half of a driver's start is the loading and verifying of some 15,000 classes. The archive (JEP 350)
holds them ready; with it the first batch costs 17 CPU-seconds instead of 25 (docs/performance.md).
It is made once per Java and class path by a real run (`ingest-platform jars warm`), and a driver
without one just starts slower.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ingest_platform.spark.java import Java

# Set by the run that makes the archive: where to leave it.
RECORD_VARIABLE: Final = "INGEST_RECORD_CLASSES"


def archive_file(folder: Path, java: Java, jars: Sequence[Path], spark_jars: Path) -> Path:
    """Where the archive for this Java and class path is, or would be.

    Args:
        folder: The jar cache.
        java: The JVM refuses an archive of another build, so its path and release are in the name.
        jars: The locked jars, in class path order.
        spark_jars: Spark's own jars.
    """
    release = java.home / "release"
    parts = [str(java.executable), release.read_text() if release.is_file() else str(java.major)]
    parts += [str(jar) for jar in (*jars, spark_jars)]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return folder / "archives" / f"driver-{digest[:16]}.jsa"


def jvm_options(archive: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Record an archive if the environment asks for it, use one if it is there."""
    target = environ.get(RECORD_VARIABLE)
    if target:
        return (f"-XX:ArchiveClassesAtExit={target}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
    if archive.is_file():
        # `auto`, the default of -Xshare, goes on without an archive that does not fit.
        return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
    return ()
