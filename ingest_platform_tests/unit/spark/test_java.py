"""Which Java is taken, and what a person without one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest_platform.errors import JavaNotFoundError
from ingest_platform.spark.java import OS_RELEASE, find_java, install_command


def fake_java(home: Path, version: str, modules: bool = True) -> Path:
    """A program that answers `-version` like a Java; without modules it refuses --add-modules."""
    path = home / "bin/java"
    path.parent.mkdir(parents=True)
    refuse = "" if modules else 'case "$1" in --add-modules) exit 1;; esac\n'
    path.write_text(f"#!/bin/sh\n{refuse}echo 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


def test_java_home_goes_first(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "21.0.2")
    fake_java(tmp_path / "other", "17.0.9")
    env = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other/bin")}
    found = find_java(env, jvm_folder=tmp_path / "none")
    assert (found.home, found.major) == (tmp_path / "home", 21)


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    """Many machines have Java 8 or 11 as default and a newer one beside it."""
    fake_java(tmp_path / "old", "1.8.0_392")
    fake_java(tmp_path / "jvm/java-17", "17.0.9")
    env = {"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}
    assert find_java(env, jvm_folder=tmp_path / "jvm").major == 17


def test_a_stripped_java_serves_the_services_but_not_spark(tmp_path: Path) -> None:
    fake_java(tmp_path / "slim", "21.0.2", modules=False)
    env = {"JAVA_HOME": str(tmp_path / "slim"), "PATH": ""}
    assert find_java(env, for_spark=False, jvm_folder=tmp_path / "none").major == 21
    with pytest.raises(JavaNotFoundError, match=r"jdk\.incubator\.vector"):
        find_java(env, jvm_folder=tmp_path / "none")


def test_none_at_all_says_what_to_run(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n')
    fake_java(tmp_path / "old", "11.0.2")
    env = {"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}
    with pytest.raises(JavaNotFoundError) as caught:
        find_java(env, jvm_folder=tmp_path / "none", os_release=release)
    assert "is Java 11" in str(caught.value)
    assert "apt-get install -y openjdk-17-jre-headless" in str(caught.value)


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "openjdk-17-jre-headless"),
        ('ID=debian\nVERSION_ID="13"\n', "openjdk-21-jre-headless"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install -y java-21"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper"),
        ("ID=alpine\n", "apk add"),
        ("ID=plan9\n", "sdk install java"),
    ],
)
def test_the_command_is_the_distributions_own(tmp_path: Path, release: str, command: str) -> None:
    path = tmp_path / "os-release"
    path.write_text(release)
    assert command in install_command(path)


def test_this_machine_has_a_command() -> None:
    assert install_command(OS_RELEASE)
