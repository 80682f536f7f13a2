"""The maintenance driver, before Spark is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_CODE = """
import os, subprocess, sys
from ingest_platform.drivers.maintenance import give_way
from ingest_platform.spec import MaintenanceSpec
from ingest_platform_tests.factories import make_spec
give_way([make_spec(maintenance=MaintenanceSpec(nice=int(n))) for n in sys.argv[1:]])
sys.exit(subprocess.run([sys.executable, "-c", "import os, sys; sys.exit(os.nice(0))"]).returncode)
"""


@pytest.mark.parametrize(("tables", "more"), [((10, 12), 10), ((10, 0), 0)])
def test_streams_on_the_same_host_go_first(tables, more):
    """A child of the driver, as its JVM is one. One table that must not wait decides for all."""
    command = [sys.executable, "-c", _CODE, *map(str, tables)]
    niceness = subprocess.run(command, check=False).returncode
    assert niceness == min(19, os.nice(0) + more)
