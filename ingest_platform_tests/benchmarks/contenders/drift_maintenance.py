"""The platform's maintenance in fast motion: does what standard input says, line by line.

    python -m ... SPEC LOG_DIR   <<< "compact"

A run of the schedule is a process of its own; here one process serves them all, since in fast
motion the start of a JVM would come every minute instead of every quarter of an hour.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from ingest_platform.drivers.compact_table import compact_table
from ingest_platform.drivers.diagnostics import set_up_logging
from ingest_platform.drivers.maintenance import give_way
from ingest_platform.drivers.sessions import SessionOnDemand
from ingest_platform.drivers.vacuum_table import VacuumOptions, vacuum_table
from ingest_platform.spec import StorageEnvironment, load_spec


def main() -> None:
    """Serve until standard input ends."""
    set_up_logging(as_json=False, debug=False)
    spec = load_spec(Path(sys.argv[1]), os.environ)
    storage = StorageEnvironment.from_env(os.environ)
    give_way([spec])
    with SessionOnDemand([spec], os.environ, Path(sys.argv[2]), "maintenance") as session:
        for line in sys.stdin:
            now = datetime.now(UTC)
            if line.strip() == "compact":
                report = compact_table(spec, storage, session.get, now, dry_run=False)
            else:
                options = VacuumOptions(override="fast motion")
                report = vacuum_table(spec, storage, session.get, now, options)
            sys.stderr.write(f"{line.strip()}: {report.done} {dict(report.numbers)}\n")


if __name__ == "__main__":
    main()
