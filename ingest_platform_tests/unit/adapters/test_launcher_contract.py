"""What every launcher must do, wherever its drivers run: real processes, small."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psutil
import pytest

from ingest_platform.adapters.kubernetes.launcher import KubernetesLauncher
from ingest_platform.adapters.kubernetes.settings import pod_settings
from ingest_platform.adapters.launcher import Launch, Launcher
from ingest_platform.adapters.launchers import spec_files
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.model.status import RunsAt
from ingest_platform_tests.factories import make_spec
from ingest_platform_tests.fake_cluster import FakeCluster, fake_cluster

# Stands in for a driver: it says that it is up, has a child as a driver has its JVM, and goes on
# until asked to drain; `--standby-after 9` makes it end with last words.
_DRIVER = """
import json, os, signal, subprocess, sys, threading
drained = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: drained.set())
spec, *arguments = sys.argv[1:]
print(open(spec).read().strip(), *arguments, flush=True)
if "9" in arguments:
    words = {"kind": "SpecError", "message": "no", "remedy": "yes", "retryable": False}
    with open(os.environ["INGEST_ERROR_FILE"], "w") as file:
        json.dump(words, file)
    sys.exit(2)
jvm = subprocess.Popen(["sleep", "1000"])
print("up", jvm.pid, flush=True)
drained.wait()
jvm.kill()
jvm.wait()
print("drained", flush=True)
"""
COMMAND = (sys.executable, "-c", _DRIVER)
SECONDS = 20.0


@dataclass
class Place:
    """Where drivers run: `again` makes another launcher, as after a restart of the daemon."""

    again: Callable[[], Launcher]
    launch: Launch
    cluster: FakeCluster | None = None


@pytest.fixture(params=["local", "kubernetes"])
def place(request, tmp_path) -> Iterator[Place]:
    spec = tmp_path / "defs.yaml"
    spec.write_text("the spec")
    launch = Launch(spec, "clicks", tmp_path / "logs", dict(os.environ))
    if request.param == "local":
        yield Place(lambda: LocalLauncher(COMMAND), launch)
        return
    declared = make_spec(kubernetes={"image": "ingest:1", "secrets": ["kafka"]})
    (tmp_path / "cluster").mkdir()
    with fake_cluster(tmp_path / "cluster") as cluster:
        cluster.secrets["kafka"] = {"KAFKA_SASL_PASSWORD": "hunter2-sentinel"}

        def again() -> Launcher:
            return KubernetesLauncher(
                pod_settings(declared, {}),
                cluster.connect,
                files=lambda path: spec_files(declared, path, {}),
                command=COMMAND,
            )

        yield Place(again, launch, cluster)


@pytest.fixture
def launched(place) -> Iterator[tuple[Launcher, RunsAt, int]]:
    """A driver that is up: launcher, where it runs, its child's pid."""
    launcher = place.again()
    runs_at = launcher.launch(place.launch)
    until(lambda: "up" in launcher.log_tail(runs_at))
    jvm = int(launcher.log_tail(runs_at).split()[-1])
    yield launcher, runs_at, jvm
    launcher.kill(runs_at)


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def exists(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_launch_passes_the_spec_and_captures_the_output(launched):
    launcher, runs_at, _ = launched
    assert launcher.alive(runs_at) is True
    assert launcher.log_tail(runs_at).splitlines()[0] == "the spec --name clicks"
    assert len(launcher.log_tail(runs_at, lines=1).splitlines()) == 1
    assert launcher.last_words(runs_at) is None
    assert runs_at.log
    assert runs_at.name


def test_driver_is_found_again_by_another_launcher(launched, place):
    """After a restart of the daemon, only the status document tells where the driver runs."""
    _, runs_at, _ = launched
    assert place.again().alive(dataclasses.replace(runs_at)) is True
    assert runs_at.same_process(dataclasses.replace(runs_at, log="elsewhere"))


def test_drain_lets_the_driver_finish(launched):
    launcher, runs_at, jvm = launched
    assert launcher.drain(runs_at)
    until(lambda: launcher.alive(runs_at) is False)
    assert launcher.log_tail(runs_at, lines=1) == "drained"
    assert not exists(jvm)
    assert not launcher.drain(runs_at)


def test_kill_ends_the_jvm_too(launched):
    launcher, runs_at, jvm = launched
    assert launcher.kill(runs_at)
    until(lambda: launcher.alive(runs_at) is False)
    until(lambda: not exists(jvm))
    assert not launcher.kill(runs_at)


def test_driver_that_ends_leaves_its_last_words(place):
    launcher = place.again()
    runs_at = launcher.launch(dataclasses.replace(place.launch, follows=9))
    until(lambda: launcher.alive(runs_at) is False)
    words = launcher.last_words(runs_at)
    assert words is not None
    assert (words.kind, words.remedy, words.retryable) == ("SpecError", "yes", False)
    assert launcher.log_tail(runs_at) == "the spec --name clicks --standby-after 9"


def test_two_launches_are_two_drivers(launched, place):
    """The lease decides which one writes; ending one must not touch the other."""
    launcher, runs_at, _ = launched
    other = launcher.launch(dataclasses.replace(place.launch, log_dir=place.launch.log_dir / "2"))
    assert not runs_at.same_process(other)
    assert launcher.kill(other)
    until(lambda: launcher.alive(other) is False)
    assert launcher.alive(runs_at) is True


def test_driver_of_another_kind_or_host_is_unknown(launched):
    """A stream may have been moved from one launcher to the other meanwhile."""
    launcher, runs_at, _ = launched
    kinds = {"local": "kubernetes", "kubernetes": "local"}
    elsewhere = dataclasses.replace(runs_at, launcher=kinds[runs_at.launcher], host="elsewhere")
    assert launcher.alive(elsewhere) is None
    assert not launcher.drain(elsewhere)
    assert not launcher.kill(elsewhere)
    assert not launcher.dump_threads(elsewhere)
    assert launcher.last_words(elsewhere) is None
    assert launcher.log_tail(elsewhere) == ""
    assert launcher.alive(runs_at) is True
