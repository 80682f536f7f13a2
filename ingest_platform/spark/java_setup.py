"""`python -m ingest_platform.spark.java_setup`: a Java for Spark, installed where one may."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

from ingest_platform.errors import JavaNotFoundError
from ingest_platform.spark.java import Java, find_java, install_command


def ensure_java() -> Java:
    """Find Java 17+, or install it with the system's package manager when run as root.

    Raises:
        JavaNotFoundError: There is none, and it could not be installed; names the one line to run.
    """
    try:
        return find_java(os.environ)
    except JavaNotFoundError:
        command = shlex.split(install_command())
        if os.geteuid() != 0 or shutil.which(command[0]) is None:
            raise
    print(f"no Java 17+ found; running: {shlex.join(command)}", file=sys.stderr)  # noqa: T201
    if command[0] == "apt-get":
        subprocess.run(["apt-get", "update", "-qq"], check=False)
    subprocess.run(command, check=False)
    return find_java(os.environ)


if __name__ == "__main__":
    try:
        ensure_java()
    except JavaNotFoundError as error:
        sys.exit(str(error))
