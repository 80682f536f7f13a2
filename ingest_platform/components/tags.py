"""Tags of the runs that tell a stream's story."""

STREAM = "ingest/stream"  # also what dagster.yaml limits to one run at a time
ACTION = "ingest/action"
REASON = "ingest/reason"
GENERATION = "ingest/generation"
ATTEMPT = "ingest/attempt"
WORKER = "ingest/worker"  # `host pid ticks` of the process that executes the run

MAX_LENGTH = 250


def reason_tag(reason: str) -> str:
    """A reason, cut to what a tag may hold."""
    return reason if len(reason) <= MAX_LENGTH else f"{reason[: MAX_LENGTH - 1]}…"
