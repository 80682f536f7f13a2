"""What `foreachBatch` calls: one batch after the other is written, and booked."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pyspark.sql import DataFrame

from ingest_platform.drivers.progress import Progress
from ingest_platform.maintain.auto_compaction.stream_compaction import StreamCompaction
from ingest_platform.model.offsets import OffsetRanges
from ingest_platform.model.status import BatchReport
from ingest_platform.stream.batch import BatchWriter

log = logging.getLogger(__name__)


class Batches:
    """One driver's batches, on Spark's batch thread.

    Attributes:
        failure: What a batch failed with; of its exception Spark passes on the text only.
    """

    def __init__(
        self,
        open_writer: Callable[[], BatchWriter],
        ranges: Callable[[int], OffsetRanges],
        compaction: StreamCompaction,
        progress: Progress,
        booked: Callable[[], None],
    ) -> None:
        """Bind the batches to what they need.

        Args:
            open_writer: Called in the first batch: only then has Spark given the checkpoint its id.
            ranges: Offsets of a batch.
            compaction: Told of each batch before it is written, and when it is committed.
            progress: Where a batch is booked.
            booked: Called after that.
        """
        self._open_writer, self._ranges, self._compaction = open_writer, ranges, compaction
        self._progress, self._booked = progress, booked
        self._writer: BatchWriter | None = None
        self.failure: BaseException | None = None

    def write(self, rows: DataFrame, batch: int) -> None:
        """Write the batch, unless the table has it already.

        Raises:
            BaseException: Whatever went wrong; it is the `failure`, too.
        """
        try:
            self._write(rows, batch)
        except BaseException as error:
            self.failure = error
            raise

    def _write(self, rows: DataFrame, batch: int) -> None:
        self._writer = self._writer or self._open_writer()
        ranges = self._ranges(batch)
        self._compaction.before_batch()
        report = self._writer.write(rows, batch)
        if report:
            self._compaction.committed()
            self._progress.finished(report, ranges)
            _tell(report)
        else:
            self._progress.found_committed(ranges)
        self._booked()


def _tell(report: BatchReport) -> None:
    log.info(
        "batch %d: %d rows, %d quarantined, %.2f s, version %s",
        report.id,
        report.rows,
        report.quarantined,
        report.seconds,
        report.table_version,
    )
