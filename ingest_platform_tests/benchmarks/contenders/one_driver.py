"""Everything in one driver, as is often done: stream, compaction in a thread, and vacuum.

The compaction reads a partition, repartitions and overwrites it with `dataChange=false`. It takes
the hours that the stream has left behind.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql.streaming.query import StreamingQuery

from ingest_platform_tests.benchmarks.contenders.plain_script import report, session

COMPACT_EVERY = 60  # batches, at 15 s a quarter of an hour
VACUUM_EVERY = 240


def main() -> None:
    """Run until killed."""
    args = arguments()
    spark = session(args)
    spark.sparkContext.setLogLevel("ERROR")
    create(spark, args)
    clicks = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap_servers)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_offsets_per_trigger)
        .load()
        .select(F.from_json(F.col("value").cast("string"), args.schema).alias("r"))
        .select("r.*")
        .withColumn("hour", F.date_format("event_time", "yyyy-MM-dd-HH"))
        .repartition(args.writers)
    )
    query = (
        clicks.writeStream.format("delta")
        .outputMode("append")
        .option("maxRecordsPerFile", 3000000)
        .option("mergeSchema", "true")
        .option("checkpointLocation", f"{args.table}/_checkpoints/clicks")
        .partitionBy("hour")
        .start(args.table)
    )
    threading.Thread(target=maintain, args=(spark, query, args.table), daemon=True).start()
    with args.progress.open("w", encoding="utf-8") as file:
        report(query, file)


def create(spark: SparkSession, args: argparse.Namespace) -> None:
    """The table with its retention, which in fast motion is some minutes."""
    spark.sql(
        f"CREATE TABLE delta.`{args.table}` ({args.schema}, hour STRING) USING delta "
        f"PARTITIONED BY (hour) TBLPROPERTIES ('delta.deletedFileRetentionDuration' = "
        f"'{args.retention}', 'delta.logRetentionDuration' = 'interval 4 days')"
    )


def maintain(spark: SparkSession, query: StreamingQuery, table: str) -> None:
    """Compact and vacuum at their ratio to the batches."""
    compacted, done = set[str](), {"compact": 0, "vacuum": 0}
    while query.isActive:
        time.sleep(0.2)
        last = query.lastProgress
        batch = int(last["batchId"]) if last else 0
        if batch // COMPACT_EVERY > done["compact"]:
            done["compact"] = batch // COMPACT_EVERY
            compact(spark, table, compacted)
        if batch // VACUUM_EVERY > done["vacuum"]:
            done["vacuum"] = batch // VACUUM_EVERY
            spark.sql(f"VACUUM delta.`{table}`").collect()


def compact(spark: SparkSession, table: str, compacted: set[str]) -> None:
    """Rewrite the hours that were left behind since the last time."""
    rows = spark.read.format("delta").load(table)
    hours = sorted(row["hour"] for row in rows.select("hour").distinct().collect())
    for hour in hours[:-1]:
        if hour in compacted:
            continue
        compacted.add(hour)
        try:
            (
                rows.where(F.col("hour") == hour)
                .repartition(1)
                .write.format("delta")
                .mode("overwrite")
                .option("dataChange", "false")
                .option("replaceWhere", f"hour = '{hour}'")
                .save(table)
            )
        except Exception as error:  # noqa: BLE001 - that script would go on, too
            sys.stderr.write(f"compaction of {hour}: {error}\n"[:500])


def arguments() -> argparse.Namespace:
    """What differs between runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap-servers", "topic", "table", "schema", "jars", "driver-memory"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--progress", type=Path, required=True)
    parser.add_argument("--retention", required=True)
    parser.add_argument("--max-offsets-per-trigger", type=int, required=True)
    parser.add_argument("--snapshot-partitions", type=int, default=2)
    parser.add_argument("--writers", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
