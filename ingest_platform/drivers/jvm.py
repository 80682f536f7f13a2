"""What a driver's JVM and its Spark session say of themselves."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from ingest_platform.model.status import JvmReport


def jvm_report(spark: SparkSession) -> JvmReport:
    """Heap and collections of the driver's JVM, by its management beans."""
    jvm: Any = spark._jvm
    factory = jvm.java.lang.management.ManagementFactory
    heap = factory.getMemoryMXBean().getHeapMemoryUsage()
    collectors = list(factory.getGarbageCollectorMXBeans())
    after = 0
    for pool in factory.getMemoryPoolMXBeans():
        usage = pool.getCollectionUsage()
        if usage is not None:
            after += int(usage.getUsed())
    return JvmReport(
        heap_used=int(heap.getUsed()),
        heap_after_gc=after,
        heap_max=int(heap.getMax()),
        gc_seconds=sum(int(c.getCollectionTime()) for c in collectors) / 1000,
        gc_count=sum(int(c.getCollectionCount()) for c in collectors),
    )


def trigger_seconds(spark: SparkSession) -> dict[int, float]:
    """Duration of the last triggers by batch, as Spark's own progress reports say."""
    return {
        int(p["batchId"]): p["durationMs"]["triggerExecution"] / 1000
        for query in spark.streams.active
        for p in query.recentProgress
        if "addBatch" in p["durationMs"]
    }
