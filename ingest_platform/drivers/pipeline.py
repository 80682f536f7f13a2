"""From the topic to the table, within one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from ingest_platform.drivers.preparation import Prepared, Tables
from ingest_platform.model.offsets import OffsetRanges
from ingest_platform.spec import KafkaEnvironment, StorageEnvironment
from ingest_platform.stream.batch import BatchWriter, StreamContext
from ingest_platform.stream.decode import Decoder
from ingest_platform.stream.footers import footer_reader
from ingest_platform.stream.source import kafka_options, read_ranges, read_stream


@dataclass(frozen=True)
class Pipeline:
    """A stream's source, decoder and tables.

    Attributes:
        spark: The session.
        prepared: The stream, and where it starts.
        tables: Both tables, checked.
        options: Of Spark's Kafka source. Holds secrets: never log it.
        storage: Credentials of the object store.
    """

    spark: SparkSession
    prepared: Prepared
    tables: Tables
    options: Mapping[str, str]
    storage: StorageEnvironment

    @classmethod
    def open(
        cls,
        spark: SparkSession,
        prepared: Prepared,
        kafka: KafkaEnvironment,
        storage: StorageEnvironment,
    ) -> Pipeline:
        """Create or check the tables.

        Raises:
            SpecError: The schema or the transform is wrong, or an existing table contradicts them.
        """
        options = kafka_options(prepared.spec.source, kafka, prepared.spec.name)
        return cls(spark, prepared, prepared.tables(spark), options, storage)

    def decoded(self, most: int) -> DataFrame:
        """The endless read, in batches of `most` records."""
        spec, tables = self.prepared.spec, self.tables
        start = self.prepared.start
        records = read_stream(self.spark, spec.source, self.options, most, start)
        return Decoder(tables.data, spec.decode, tables.columns.reserved).rows(records)

    def writer(
        self,
        session: str,
        ranges: Callable[[int], OffsetRanges],
        *,
        committed: Callable[[int], None],
        fence: Callable[[], None],
        lag: Callable[[OffsetRanges], Mapping[str, int]],
        reached: Callable[[str], None],
    ) -> BatchWriter:
        """What writes the batches; the arguments are those of `StreamContext`."""
        spec, spark, columns = self.prepared.spec, self.spark, self.tables.columns
        context = StreamContext(
            spark=spark,
            spec=spec,
            schema=self.tables.data,
            reserved=columns.reserved,
            session=session,
            ranges=ranges,
            reread=lambda wanted: read_ranges(
                spark, self.options, wanted, f"ingest-{spec.name}-again"
            ),
            read_footer=footer_reader(spec.table.path, self.storage),
            committed=committed,
            fence=fence,
            lag=lag,
            transform=self.prepared.transform,
            reached=reached,
            writers=spec.table.target_writers or spark.sparkContext.defaultParallelism,
        )
        return BatchWriter(context, columns.written)
