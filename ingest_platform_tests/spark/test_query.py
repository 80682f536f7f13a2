"""A driver's query: its first batch is small, and it ends between batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from ingest_platform.drivers.query import FIRST_BATCH, Query

pytestmark = pytest.mark.slow

MOST = 2 * FIRST_BATCH


class Stream:
    """A query on Spark's own source of counted rows; keeps the size of each batch."""

    def __init__(self, spark: SparkSession, checkpoint: Path) -> None:
        self.sizes: list[int] = []
        self.ended: list[str] = []
        self.end_asked = threading.Event()
        self.broken: BaseException | None = None
        self.after_batch: Callable[[], None] = lambda: None
        self._spark, self._checkpoint = spark, checkpoint

    def run(self) -> None:
        Query(
            name="rows",
            checkpoint=str(self._checkpoint),
            decoded=self._rows,
            on_batch=self._on_batch,
            end_asked=self.end_asked,
            ending=lambda: self.ended.append("ending"),
            failed=lambda: self.broken is not None,
        ).run(MOST, timedelta(0))

    def _rows(self, most: int) -> DataFrame:
        source = self._spark.readStream.format("rate-micro-batch")
        return source.option("rowsPerBatch", most).option("numPartitions", 1).load()

    def _on_batch(self, rows: DataFrame, _batch: int) -> None:
        self.sizes.append(rows.count())
        try:
            self.after_batch()
        except BaseException as error:
            self.broken = error
            raise


def test_the_first_batch_is_small_and_the_others_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Within seconds of a start somebody must be able to tell whether the stream works."""
    stream = Stream(spark, tmp_path)
    stream.after_batch = lambda: stream.end_asked.set() if len(stream.sizes) == 3 else None
    stream.run()
    # The source of the second start goes on where its own count of rows would be by then.
    assert stream.sizes[0] == FIRST_BATCH
    assert len(stream.sizes) == 3
    assert stream.sizes[2] == MOST
    assert stream.ended == ["ending"]


def test_an_end_that_is_asked_for_in_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A drain during the small batch must not start the large ones."""
    stream = Stream(spark, tmp_path)
    stream.after_batch = stream.end_asked.set
    stream.run()
    assert stream.sizes == [FIRST_BATCH]


def test_a_batch_that_fails_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever runs the query learns of it, in the small first batch as well."""
    stream = Stream(spark, tmp_path)

    def fail() -> None:
        raise RuntimeError("no")

    stream.after_batch = fail
    with pytest.raises(StreamingQueryException):
        stream.run()
    assert stream.sizes == [FIRST_BATCH]
