"""Java is installed only where this process may, and otherwise one line says what to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ingest_platform.errors import JavaNotFoundError
from ingest_platform.spark import java_install
from ingest_platform.spark.java import Java
from ingest_platform.spark.java_install import find_or_install_java

JAVA = Java(Path("/usr/bin/java"), 17)
APT = "apt-get install -y openjdk-17-jre-headless"


class Machine:
    """A machine without Java; `run` makes it one with Java if `installs`."""

    def __init__(self, *, installs: bool = True) -> None:
        self.installs = installs
        self.ran: list[str] = []
        self.told: list[str] = []

    def find(self, _env: object) -> Java:
        if self.installs and any("install" in line or "add" in line for line in self.ran):
            return JAVA
        raise JavaNotFoundError("no Java", where="PATH", remedy=f"run `{APT}`")

    def run(self, command: Sequence[str]) -> int:
        self.ran.append(" ".join(command))
        return 0

    def setup(self, uid: int) -> Java:
        return find_or_install_java({}, say=self.told.append, uid=uid, run=self.run, find=self.find)


@pytest.fixture(autouse=True)
def debian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_install, "install_command", lambda: APT)


def test_java_that_is_there_is_taken():
    machine = Machine()
    assert find_or_install_java({}, say=machine.told.append, uid=0, find=lambda _: JAVA) == JAVA
    assert machine.told == []


def test_root_installs_with_fresh_package_lists():
    """A new container has no lists at all: the installation alone would fail."""
    machine = Machine()
    assert machine.setup(uid=0) == JAVA
    assert machine.ran == ["apt-get update", APT]
    assert APT in machine.told[0]


def test_others_are_told_what_to_run():
    machine = Machine()
    with pytest.raises(JavaNotFoundError) as caught:
        machine.setup(uid=1000)
    assert APT in caught.value.remedy
    assert machine.ran == []


def test_an_installation_that_failed_is_told():
    with pytest.raises(JavaNotFoundError):
        Machine(installs=False).setup(uid=0)


def test_an_unknown_manager_is_not_run(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(java_install, "install_command", lambda: "sdk install java 17.0.15-tem")
    with pytest.raises(JavaNotFoundError):
        machine.setup(uid=0)
    assert machine.ran == []
