"""What of the driver's JVM options is the platform's, and what the user's."""

from __future__ import annotations

import os
import subprocess

import pytest

from ingest_platform.drivers.vacuum_table import JVM_OPTIONS as VACUUM_JVM
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
    flags = flags_of_a_jvm(JVM_OPTIONS, users)
    assert flags[collector] == "true"
    collectors = ("UseParallelGC", "UseG1GC", "UseSerialGC", "UseZGC")
    assert [flags[name] for name in collectors].count("true") == 1


def test_no_full_collection_before_the_drivers_classes_are_there() -> None:
    assert int(flags_of_a_jvm(JVM_OPTIONS, "")["MetaspaceSize"]) == 256 << 20


def test_vacuums_jvm_compiles_once_unless_the_user_wants_otherwise() -> None:
    options = (*JVM_OPTIONS, *VACUUM_JVM)
    assert flags_of_a_jvm(options, "")["TieredStopAtLevel"] == "1"
    assert flags_of_a_jvm(options, "-XX:TieredStopAtLevel=4")["TieredStopAtLevel"] == "4"


def flags_of_a_jvm(platform: tuple[str, ...], users: str) -> dict[str, str]:
    """All flags of a JVM that starts with these options, by name."""
    answer = subprocess.run(
        [
            str(find_java(os.environ).executable),
            *driver_java_options(platform, users).split(),
            "-XX:+PrintFlagsFinal",
            "-version",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    rows = (line.split() for line in answer.stdout.splitlines() if " = " in line)
    return {row[1]: row[3] for row in rows}
