"""The maintenance driver, before Spark is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_AUTOGROUP = Path("/proc/self/autogroup")

_SHOWN = """
import json, os, pathlib
group = pathlib.Path("/proc/self/autogroup")
print(json.dumps([os.nice(0), group.read_text() if group.exists() else ""]))
"""

_CODE = f"""
import subprocess, sys
from ingest_platform.drivers.maintenance import give_way
from ingest_platform.spec import MaintenanceSpec
from ingest_platform_tests.factories import make_spec
give_way([make_spec(maintenance=MaintenanceSpec(nice=int(n))) for n in sys.argv[1:]])
subprocess.run([sys.executable, "-c", {_SHOWN!r}], check=True)
"""


def child_of_a_driver(*nices: int, session: bool) -> tuple[int, str]:
    """Niceness of a driver's child, as its JVM is one, and what Linux tells of its session.

    Nothing is told where the kernel knows no such groups, or of a session older than them, as that
    of a container's first process can be.
    """
    command = [sys.executable, "-c", _CODE, *map(str, nices)]
    said = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, start_new_session=session
    )
    own, group = json.loads(said.stdout)
    return own, group


@pytest.mark.parametrize(("tables", "more"), [((10, 12), 10), ((10, 0), 0)])
def test_streams_on_the_same_host_go_first(tables, more):
    """One table that must not wait decides for all."""
    own, group = child_of_a_driver(*tables, session=True)
    assert own == min(19, os.nice(0) + more)
    assert group.split()[-2:] == (["nice", str(more)] if _AUTOGROUP.exists() else [])


@pytest.mark.skipif(not _AUTOGROUP.exists(), reason="sessions are not scheduled as groups here")
def test_the_session_of_who_types_the_command_keeps_its_priority():
    before = _AUTOGROUP.read_text()
    assert child_of_a_driver(10, session=False)[1] == before
    assert _AUTOGROUP.read_text() == before
