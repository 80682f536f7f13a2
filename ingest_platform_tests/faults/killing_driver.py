"""The driver, but killed with SIGKILL when a phase of a batch ends: `KILL_AT=commit:1`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from ingest_platform.drivers.stream import Options, log_dir, run_stream
from ingest_platform.spec import load_spec

VARIABLE = "KILL_AT"


def main() -> None:
    """Run `sys.argv[1]` with --available-now."""
    phase, _, batch = os.environ[VARIABLE].partition(":")
    begun = -1

    def reached(name: str) -> None:
        nonlocal begun
        begun += name == "plan"
        if name == phase and begun == int(batch):
            os.kill(os.getpid(), signal.SIGKILL)

    spec = load_spec(Path(sys.argv[1]), os.environ)
    folder = log_dir(spec.name, os.environ)
    run_stream(spec, os.environ, Options(available_now=True, log_dir=folder, reached=reached))


if __name__ == "__main__":
    main()
