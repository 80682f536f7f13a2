"""A repair in a process of its own, killed with SIGKILL when a step is over: `KILL_AT=5-retired`.

It begins the repair that `WISHES` (JSON) asks for, or goes on with the open one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ingest_platform.drivers.repair import run_removal
from ingest_platform.model.repair import Wishes
from ingest_platform.steer.repair_planning import make_plan
from ingest_platform_tests.deployed_stream import DeployedStream
from ingest_platform_tests.repairs import kill_at, patient_of, repairing


def main() -> None:
    """Repair the stream whose spec is `sys.argv[1]`."""
    stream = DeployedStream(Path(sys.argv[1]), os.environ)
    reached = kill_at(os.environ["KILL_AT"])

    def take_out(generation: int) -> None:
        run_removal(stream.spec, os.environ, generation, reached)

    surgery, patient = repairing(stream, take_out, reached), patient_of(stream)
    current = patient.journal.open_repair()
    if current:
        surgery.go_on(current)
    else:
        plan = make_plan(patient, Wishes(**json.loads(os.environ["WISHES"])))
        assert plan is not None
        surgery.begin(plan)


if __name__ == "__main__":
    main()
