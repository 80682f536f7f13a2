"""Tags of the runs that tell a stream's story."""

STREAM = "ingest/stream"  # also what dagster.yaml limits to one run at a time
MAINTENANCE = "ingest/maintenance"  # a lane; also limited to one run at a time
ACTION = "ingest/action"
REASON = "ingest/reason"
GENERATION = "ingest/generation"
ATTEMPT = "ingest/attempt"
OVERLAP = "ingest/overlap"  # `no`: the driver serves nobody, so it is ended first
CAUSE = "ingest/cause"  # kind of error that made a launch necessary
ERROR = "ingest/error"  # the error's class, when the driver of a launch said one
MESSAGE = "ingest/message"
REMEDY = "ingest/remedy"
RETRYABLE = "ingest/retryable"  # set if that error heals by itself
AFTER = "ingest/after"  # lease generation at the time of the launch
WORKER = "ingest/worker"  # `host pid ticks` of the process that executes the run

MAX_LENGTH = 250


def text_tag(text: str) -> str:
    """A text, cut to what a tag may hold."""
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"
