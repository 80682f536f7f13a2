"""The states of a stream, as the supervisor sees them and the UI shows them."""

from enum import StrEnum


class StreamState(StrEnum):
    """One enum for driver, supervisor, CLI and UI."""

    STOPPED = "stopped"  # no driver, and none is wanted: paused or never started
    STARTING = "starting"  # launched, but no heartbeat with a finished batch yet
    RUNNING = "running"  # heartbeats arrive and batches commit
    DEGRADED = "degraded"  # works, but drifts from its own baseline: turnover is due
    DRAINING = "draining"  # finishes its current batch, then exits by itself
    BACKOFF = "backoff"  # died or failed to start; the next attempt waits for its time
    FAILED = "failed"  # an error that a person must look at; no attempt is made
