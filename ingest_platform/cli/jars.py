"""`ingest-platform jars`: the locked jars, against what is installed and into the cache."""

from __future__ import annotations

import os
from typing import get_args

import click
from rich.console import Console

from ingest_platform.spark.classpath import classpath
from ingest_platform.spark.installed import installed_spark, verify_against_installed
from ingest_platform.spark.jar_lock import JarSet, load_lock
from ingest_platform.spark.jars import JarCache, ensure


@click.group()
def jars() -> None:
    """Verify or download the locked jars.

    \b
    Every jar is named in ingest_platform/spark/jars.lock.toml, with its sha256. The cache is
    $INGEST_JAR_CACHE, the source $INGEST_MAVEN_URL (Maven Central).
    """  # noqa: D301 - click's mark for a block to keep


@jars.command()
def verify() -> None:
    """Hold the lock against the installed pyspark and delta-spark.

    \b
    Example:
      ingest-platform jars verify
    """  # noqa: D301 - click's mark for a block to keep
    lock = load_lock()
    installed = installed_spark(os.environ)
    verify_against_installed(lock, installed)
    click.echo(
        f"{len(lock.of('spark'))} locked jars fit pyspark {installed.pyspark}, delta-spark "
        f"{installed.delta_spark}, Scala {installed.scala}, hadoop {installed.hadoop}"
    )


@jars.command()
@click.argument("sets", nargs=-1, type=click.Choice(get_args(JarSet)), metavar="[SET]...")
def download(sets: tuple[JarSet, ...]) -> None:
    """Bring the jars into the cache: those of SET (spark, kafka, s3), or all.

    \b
    Examples:
      ingest-platform jars download          # all, as `make demo` needs them
      ingest-platform jars download spark    # a driver's only
    """  # noqa: D301 - click's mark for a block to keep
    lock, cache = load_lock(), JarCache.from_env(os.environ)
    console = Console(stderr=True)
    for jar_set in sets or get_args(JarSet):
        if jar_set == "spark":
            paths = classpath(os.environ, console=console)  # with the compiled LogStore
        else:
            paths = ensure(jar_set, cache=cache, lock=lock, console=console)
        click.echo(f"{jar_set}: {len(paths)} jars in {cache.folder}")


@jars.command()
def warm() -> None:
    """Record the classes that a driver loads, so that drivers start several seconds sooner.

    Runs one small stream on embedded services, about 40 seconds; does nothing when it was done.

    \b
    Example:
      ingest-platform jars warm
    """  # noqa: D301 - click's mark for a block to keep
    from ingest_platform.embedded.warm_up import warm_up  # noqa: PLC0415

    console = Console(stderr=True)
    with console.status("recording the classes that a driver loads (once, about 40 s)"):
        archive = warm_up(os.environ, console)
    click.echo(f"class archive: {archive}")
