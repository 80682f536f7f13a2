"""End a stream's driver: gently, between two batches, or at once."""

from __future__ import annotations

from dataclasses import dataclass

from ingest_platform.errors import RetryableFault
from ingest_platform.model.control import DrainRequest
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import Status
from ingest_platform.steer.reach import Reach

_POLL_SECONDS = 0.25
_OVER = {StreamState.STOPPED, StreamState.BACKOFF, StreamState.FAILED}
_DUMP_SECONDS = 1.0


@dataclass(frozen=True)
class Ended:
    """No driver runs; `generation` is the one that ended, None if there was none."""

    generation: int | None = None


@dataclass(frozen=True)
class StillThere:
    """The driver has not ended in time."""

    generation: int
    reason: str


def drain(reach: Reach, *, by: str, reason: str, seconds: float) -> Ended | StillThere:
    """Ask the driver to finish its batch and exit, and wait up to `seconds` until it is gone.

    The request is a document, so it reaches a driver on any host. A driver whose heartbeat hangs
    does not read it: after half the time it gets a signal as well.
    """
    status = reach.stores.status.read(reach.name)
    if status is None or _gone(reach, status):
        return Ended()
    at = reach.now().isoformat(timespec="seconds")
    reach.stores.control.request_drain(DrainRequest(status.generation, by, at, reason))
    reach.say(f"Asked generation {status.generation} to finish its batch and exit.")
    begun, signalled = reach.clock(), False
    while not _gone(reach, status):
        spent = reach.clock() - begun
        if spent >= seconds:
            return StillThere(status.generation, f"it has not ended after {seconds:g} s")
        if spent >= seconds / 2 and not signalled:
            signalled = reach.launcher.drain(status.runs_at) or True
        reach.sleep(_POLL_SECONDS)
    reach.say(f"Generation {status.generation} has ended.")
    return Ended(status.generation)


def stop(reach: Reach, status: Status | None = None) -> Ended:
    """End the driver's processes now; what it had not committed, its successor repeats.

    `status` says which driver; the stream's present one if None.
    """
    status = status or reach.stores.status.read(reach.name)
    if status is None:
        return Ended()
    if reach.launcher.dump_threads(status.runs_at):
        reach.say(f"Asked the JVM for a thread dump, in {status.runs_at.log}.")
        reach.sleep(_DUMP_SECONDS)
    if not reach.launcher.kill(status.runs_at):
        return Ended()
    reach.say(f"Ended generation {status.generation}, {status.runs_at.name}.")
    return Ended(status.generation)


def _gone(reach: Reach, before: Status) -> bool:
    alive = reach.launcher.alive(before.runs_at)
    if alive is not None:
        return not alive
    try:  # on another host: by its last word, or by its successor's first
        now = reach.stores.status.read(reach.name)
    except RetryableFault:
        return False
    return now is not None and (now.state in _OVER or now.generation > before.generation)
