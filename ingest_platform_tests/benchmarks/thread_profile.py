"""What a streaming query's thread is at, by samples of its stack."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ingest_platform_tests.benchmarks.attach import jcmd

OTHER: Final = "other"

# By the innermost frame that one of these is in; the second are asked where no first is found.
_OF_A_WRITE: Final = {
    ".listFrom": "listing the log",
    "sql.delta.Checkpoints": "writing a log checkpoint",
    "sql.delta.hooks.CheckpointHook": "writing a log checkpoint",
    "sql.delta.Snapshot": "making a snapshot",
    "sql.delta.ValidateChecksum": "making a snapshot",
    "sql.delta.files.": "writing files",
    "sql.delta.OptimisticTransaction": "committing",
    "sql.kafka010.": "asking Kafka",
    "CheckpointFileManager": "Spark's own checkpoint",
}
_AROUND_IT: Final = {"QueryExecution": "planning", "py4j.": "Python"}


def sample(pid: int, samples: int, *, every: float) -> Counter[str]:
    """What the query's thread of the JVM was at, so many times; it stops for 10 ms each time.

    Raises:
        OSError: The JVM is gone or does not let itself be attached to.
    """
    seen: Counter[str] = Counter()
    for _ in range(samples):
        seen.update(cause(stack) for stack in query_stacks(jcmd(pid, "Thread.print")))
        time.sleep(every)
    return seen


def query_stacks(dump: str) -> list[list[str]]:
    """Frames of each streaming query's thread in a thread dump, innermost first."""
    threads = (block.splitlines() for block in dump.split("\n\n"))
    return [
        [line.strip() for line in lines if line.lstrip().startswith("at ")]
        for lines in threads
        if lines and lines[0].startswith('"stream execution thread')
    ]


def cause(stack: Sequence[str]) -> str:
    """What a stack is there for, such as "listing the log"."""
    named = (
        name
        for causes in (_OF_A_WRITE, _AROUND_IT)
        for frame in stack
        for part, name in causes.items()
        if part in frame
    )
    return next(named, OTHER)
