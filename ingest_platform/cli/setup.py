"""`ingest-platform setup`: what a driver needs on this machine beside Python."""

from __future__ import annotations

import os

import click
from rich.console import Console

from ingest_platform.embedded.services import fetch_jars
from ingest_platform.spark.jars import JarCache
from ingest_platform.spark.java_install import find_or_install_java


@click.command()
def setup() -> None:
    """Find Java 17 or newer, or install it where this user may, and download the locked jars.

    Only root installs, with apt-get, dnf or apk; otherwise the command to run is printed. Jars go
    into $INGEST_JAR_CACHE and are verified by their sha256.

    \b
    Example:
      ingest-platform setup      # `make` does it by itself
    """  # noqa: D301 - click's mark for a block to keep
    console = Console(stderr=True, highlight=False)
    java = find_or_install_java(
        os.environ, say=lambda text: console.print(text, soft_wrap=True), uid=os.getuid()
    )
    console.print(f"Java {java.major}: {java.executable}", soft_wrap=True)
    fetch_jars(os.environ, console)
    console.print(f"jars: {JarCache.from_env(os.environ).folder}", soft_wrap=True)
