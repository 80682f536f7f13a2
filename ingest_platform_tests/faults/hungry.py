"""A user's transform that eats the driver's heap, as long as `EAT` is set."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812


def hungry(rows: DataFrame) -> DataFrame:
    """Identity; or 1.9 GB for each row."""
    if not os.environ.get("EAT"):
        return rows
    meal = F.length(F.repeat(F.col("id").cast("string"), F.lit(1_900_000_000)))
    return rows.withColumn("id", F.when(meal > 0, F.col("id")))
