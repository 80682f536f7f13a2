"""Contender (a): the plain PySpark script that this platform takes the place of.

Kafka -> from_json -> repartition -> append to a Delta table partitioned by hour, with settings from
a cluster in production, and the defaults of Spark and Delta for everything else. Added are only the
file that its progress reports go to, and silence on the console.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import IO

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql.streaming.query import StreamingQuery

PROGRESS_SECONDS = 5


def main() -> None:
    """Run until killed."""
    args = arguments()
    spark = session(args)
    spark.sparkContext.setLogLevel("WARN")
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap_servers)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_offsets_per_trigger)
        .load()
    )
    clicks = (
        records.select(F.from_json(F.col("value").cast("string"), args.schema).alias("click"))
        .select("click.*")
        .withColumn("hourly_timestamp", F.date_trunc("hour", "event_time"))
        .repartition(args.writers)
    )
    writer = (
        clicks.writeStream.format("delta")
        .outputMode("append")
        .option("maxRecordsPerFile", 3000000)
        .option("mergeSchema", "true")
        .option("checkpointLocation", f"{args.table}/_checkpoints/clicks")
        .partitionBy("hourly_timestamp")
    )
    if args.trigger_seconds:
        writer = writer.trigger(processingTime=f"{args.trigger_seconds} seconds")
    with args.progress.open("w", encoding="utf-8") as file:
        report(writer.start(args.table), file)


def session(args: argparse.Namespace) -> SparkSession:
    """The cluster's settings, but for those of YARN, which have no effect on one machine."""
    return (
        SparkSession.builder.appName("clicks")
        .master("local[*]")
        .config("spark.jars", args.jars)
        .config("spark.driver.memory", args.driver_memory)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.sql.parquet.outputTimestampType", "INT96")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.sql.files.maxPartitionBytes", "1073741824")
        .config("spark.driver.maxResultSize", "0")
        .config("spark.executor.heartbeatInterval", "25000")
        .config("spark.databricks.delta.vacuum.parallelDelete.enabled", "true")
        .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        .config("spark.databricks.delta.checkpoint.partSize", "1000000")
        .config("spark.databricks.delta.snapshotPartitions", str(args.snapshot_partitions))
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def report(query: StreamingQuery, file: IO[str]) -> None:
    """Write each progress report as one line; Spark keeps the last hundred."""
    last = -1
    while not query.awaitTermination(PROGRESS_SECONDS):
        for progress in query.recentProgress:
            if progress.batchId > last:
                last = progress.batchId
                file.write(json.dumps(json.loads(progress.json)) + "\n")
        file.flush()


def arguments() -> argparse.Namespace:
    """What differs between runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap-servers", "topic", "table", "schema", "jars", "driver-memory"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--progress", type=Path, required=True)
    parser.add_argument("--max-offsets-per-trigger", type=int, required=True)
    parser.add_argument("--snapshot-partitions", type=int, required=True)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--trigger-seconds", type=float, default=0.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
