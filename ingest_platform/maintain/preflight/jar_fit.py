"""Does a jar fit the Spark that is installed, by its name and by the classes in it?

Jars tell by convention what they were made for: `iceberg-spark-runtime-4.0_2.13-1.10.0.jar` is for
Spark 4.0 and Scala 2.13. What a fat jar brings along, only its directory tells.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from ingest_platform.spark.installed import InstalledSpark, minor

WHY_JARS = "the first batch would fail with NoSuchMethodError or ClassNotFoundException"

_FOR_SCALA = re.compile(
    r".+?(?:[-_](?P<spark>[34]\.\d+))?_(?P<scala>2\.\d+|3)-(?P<version>\d.*)\.jar"
)
_PLAIN = re.compile(r".+?-(?P<version>\d.*)\.jar")
# Present in many jars, and the same or never loaded.
_HARMLESS = re.compile(r"(META-INF/|.*(module-info|package-info)\.class$)")


def name_misfits(name: str, installed: InstalledSpark) -> Iterator[str]:
    """What a jar's file name says that Spark is not, each as the end of a sentence."""
    scala, plain = _FOR_SCALA.fullmatch(name), _PLAIN.fullmatch(name)
    if scala:
        if scala["scala"] != installed.scala:
            yield f"is for Scala {scala['scala']}, but Spark runs Scala {installed.scala}"
        made_for = scala["spark"]
        if name.startswith("spark-"):  # Spark's own modules carry its version
            made_for = made_for or minor(scala["version"])
        if made_for not in {None, minor(installed.spark)}:
            yield f"is for Spark {made_for}, but Spark is {installed.spark}"
    elif plain and name.startswith("hadoop-") and plain["version"] != installed.hadoop:
        yield f"is of Hadoop {plain['version']}, but Spark has {installed.hadoop}"


def artifact_of(name: str) -> str | None:
    """`delta-spark_4.2_2.13` of `delta-spark_4.2_2.13-4.4.0.jar`; None without a version."""
    match = _FOR_SCALA.fullmatch(name) or _PLAIN.fullmatch(name)
    return name.removesuffix(f"-{match['version']}.jar") if match else None


def shadowed(jar: Path, there: Iterable[Path]) -> Mapping[str, int]:
    """How many classes of `jar` are in each of the jars `there` too, by their names."""
    mine = _classes(jar)
    found = Counter({other.name: len(mine & _classes(other)) for other in there if other != jar})
    return +found


@lru_cache(maxsize=512)
def _classes(jar: Path) -> frozenset[str]:
    """The class files of a jar; none of one that cannot be read."""
    try:
        with zipfile.ZipFile(jar) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return frozenset()
    return frozenset(n for n in names if n.endswith(".class") and not _HARMLESS.match(n))
