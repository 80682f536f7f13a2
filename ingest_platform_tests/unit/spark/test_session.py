"""What of the driver's JVM options is the platform's, and what the user's."""

from __future__ import annotations

import os
import subprocess

import pytest

from ingest_platform.spark.java import find_java
from ingest_platform.spark.session import JVM_OPTIONS, driver_java_options


def test_the_users_options_come_last() -> None:
    assert driver_java_options(("-Xss4m", "-Dx=1"), "-Xss8m") == "-Xss4m -Dx=1 -Xss8m"
    assert driver_java_options(("-Xss4m",), "") == "-Xss4m"


@pytest.mark.parametrize(
    ("users", "collector"),
    [
        ("", "UseParallelGC"),
        ("-XX:+UseGCOverheadLimit", "UseParallelGC"),
        ("-Xlog:gc -XX:+UseG1GC", "UseG1GC"),
        ("-XX:+UseSerialGC", "UseSerialGC"),
    ],
)
def test_a_jvm_starts_with_the_collector_that_the_user_chose(users: str, collector: str) -> None:
    java = find_java(os.environ)
    options = driver_java_options(JVM_OPTIONS, users).split()
    answer = subprocess.run(
        [str(java.executable), *options, "-XX:+PrintFlagsFinal", "-version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    in_use = {
        line.split()[1]
        for line in answer.stdout.splitlines()
        if line.split()[1:2] and line.split()[1].endswith("GC") and " = true" in line
    }
    assert collector in in_use
    assert len(in_use & {"UseParallelGC", "UseG1GC", "UseSerialGC", "UseZGC"}) == 1
