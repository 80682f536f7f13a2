"""A driver's streaming query: a small first batch, then the stream, ended between two batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

# After a start the first batch is no larger than this. A whole batch takes a cold JVM some twenty
# seconds, in which nobody could tell whether the stream works, and lag would only grow.
FIRST_BATCH: Final = 50_000

# SIGTERM must be obeyed within 30 s: this much for the batch, the rest for Spark's own end.
_DRAIN_SECONDS: Final = 22.0

_POLL_SECONDS: Any = 0.1  # PySpark takes fractions, though its annotation says int
_ONE_BATCH_ONLY: Final = "1 day"


class _DrainedError(Exception):
    """Ends the query before a batch that shall not run any more."""


@dataclass(frozen=True)
class Query:
    """What a driver runs on its records.

    Attributes:
        name: Of the stream.
        checkpoint: Path or URL of Spark's checkpoint.
        decoded: From the most records of a batch to the endless read.
        on_batch: For `foreachBatch`.
        end_asked: Set when the query shall end.
        ending: Told once when it begins to end.
        failed: Whether a batch has failed.
    """

    name: str
    checkpoint: str
    decoded: Callable[[int], DataFrame]
    on_batch: Callable[[DataFrame, int], None]
    end_asked: threading.Event
    ending: Callable[[], None]
    failed: Callable[[], bool]

    def run(self, most: int, interval: timedelta | None) -> None:
        """Until asked to end, or, without an interval, until all is read that is there now.

        Args:
            most: Records of a batch.
            interval: Between two batches' beginnings.

        Raises:
            StreamingQueryException: A batch failed.
        """
        if interval is None:
            self._wait(self._start(most, availableNow=True))
            return
        if most > FIRST_BATCH:
            self._wait(self._start(FIRST_BATCH, processingTime=_ONE_BATCH_ONLY), _is_idle)
        if not self.end_asked.is_set():
            millis = int(interval.total_seconds() * 1000)
            self._wait(self._start(most, processingTime=f"{millis} milliseconds"))

    def _start(self, most: int, **trigger: Any) -> StreamingQuery:
        writer = self.decoded(most).writeStream.queryName(self.name).foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", self.checkpoint)
        return writer.trigger(**trigger).start()

    def _batch(self, rows: DataFrame, batch: int) -> None:
        if self.end_asked.is_set():
            # Planned while the query was being stopped: the next driver runs it.
            raise _DrainedError
        self.on_batch(rows, batch)

    def _wait(
        self, query: StreamingQuery, done: Callable[[StreamingQuery], bool] = lambda _: False
    ) -> None:
        """Until it ends by itself, is done, or, when asked to end, has finished its batch."""
        deadline = float("inf")
        try:
            while not query.awaitTermination(_POLL_SECONDS):
                if self.end_asked.is_set():
                    if deadline == float("inf"):
                        deadline = time.monotonic() + _DRAIN_SECONDS
                        self.ending()
                    if time.monotonic() > deadline or not query.status["isTriggerActive"]:
                        query.stop()
                        return
                elif done(query):
                    query.stop()
                    return
        except StreamingQueryException:
            if not self.end_asked.is_set() or self.failed():
                raise
            if deadline == float("inf"):  # a batch was refused before this thread saw why
                self.ending()


def _is_idle(query: StreamingQuery) -> bool:
    # "Waiting for next trigger" or "... for data to arrive"; no flag tells it from the time before
    # the first batch.
    return str(query.status["message"]).startswith("Waiting")
