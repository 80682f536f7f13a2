"""A driver without Spark, for tests of launching and supervising: real lease, status and signals.

Called like the real one: `python -m ingest_platform_tests.stand_in_driver SPEC --name NAME`.
`STAND_IN=exit` ends at once, `STAND_IN=refuse` does so with last words, `STAND_IN=fail` reports an
error in its status, `STAND_IN=hang` never becomes healthy. As a successor in standby, with
`STAND_IN=slow` it never gets ready, and with `STAND_IN=faint` it ends when its turn has come.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ingest_platform.adapters.control_store import ControlStore
from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.processes import this_process
from ingest_platform.adapters.standby_store import StandbyStore
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.adapters.termination import leave_last_words
from ingest_platform.errors import TopicMissingError
from ingest_platform.model.lease import Lease
from ingest_platform.model.standby import Standby
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport, Status
from ingest_platform.spec import StorageEnvironment, load_spec

COMMAND = (sys.executable, "-m", "ingest_platform_tests.stand_in_driver")

HEARTBEAT_SECONDS = 0.1


def stand_by(leases: LeaseStore, follows: int, holder: str, stop: threading.Event) -> Lease | None:
    """The lease, when it has been left."""
    while not leases.vacated(follows):
        if stop.wait(HEARTBEAT_SECONDS):
            return None
    if os.environ.get("STAND_IN") == "faint":
        return None
    return leases.take_after(follows, holder, datetime.now(UTC))


def main() -> int:  # noqa: C901  (its modes)
    """Run until drained, by signal or by control document, or superseded."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    mode = os.environ.get("STAND_IN", "")
    sys.stdout.write(f"stand-in driver: {mode or 'runs'}\n")
    sys.stdout.flush()
    if mode == "exit":
        return 3
    if mode == "refuse":
        error = TopicMissingError("no such topic", remedy="create it")
        leave_last_words(error, os.environ, datetime.now(UTC))
        return 3
    parser = argparse.ArgumentParser()
    parser.add_argument("spec", type=Path)
    parser.add_argument("--name")
    parser.add_argument("--standby-after", type=int)
    options = parser.parse_args()
    spec = load_spec(options.spec, os.environ, options.name)
    objects = object_store(spec.root, StorageEnvironment.from_env(os.environ))
    leases = LeaseStore(objects, spec.name)
    here = this_process(log=os.environ.get("INGEST_LOG_FILE", ""))
    holder = f"{here.host}:{here.pid}"
    store, control = StatusStore(objects), ControlStore(objects, spec.name)
    lease: Lease | None
    if options.standby_after is None:
        lease = leases.take(holder, "stream", datetime.now(UTC))
    else:
        if mode != "slow":
            StandbyStore(objects, spec.name).write(Standby(options.standby_after, here))
        lease = stand_by(leases, options.standby_after, holder, stop)
    if lease is None:
        return 3
    status = Status(
        stream=spec.name,
        session="stand-in",
        generation=lease.generation,
        started_at=datetime.now(UTC).isoformat(),
        runs_at=here,
        oldest_unread_age=0.0,
    )

    def say(state: StreamState, error: ErrorReport | None = None) -> None:
        now = datetime.now(UTC).isoformat()
        store.write(replace(status, state=state, updated_at=now, error=error))

    say(StreamState.STARTING)
    if mode == "fail":
        say(StreamState.FAILED, ErrorReport("TopicMissingError", "no such topic", "create it"))
        return 3
    while not stop.wait(HEARTBEAT_SECONDS):
        if leases.superseded(lease):
            return 3
        wanted = control.read()
        if wanted.pause or wanted.drains(lease.generation):
            break
        if mode != "hang":
            say(StreamState.RUNNING)
    say(StreamState.STOPPED)
    leases.vacate(lease.generation, "its driver", datetime.now(UTC))
    return 0


if __name__ == "__main__":
    sys.exit(main())
