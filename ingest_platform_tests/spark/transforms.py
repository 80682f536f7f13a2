"""Transforms as users write them, right and wrong."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812


def with_another_column(rows: DataFrame) -> DataFrame:
    """A column that the schema does not have."""
    return rows.withColumn("twice", F.col("id") * 2)


def with_name_in_capitals(rows: DataFrame) -> DataFrame:
    """Another value in a column."""
    return rows.withColumn("name", F.upper("name"))


def without_odd_ids(rows: DataFrame) -> DataFrame:
    """A filter."""
    return rows.filter("id % 2 = 0")


def doubled(rows: DataFrame) -> DataFrame:
    """One row in, two rows out."""
    return rows.withColumn("copy", F.explode(F.array(F.lit(1), F.lit(2)))).drop("copy")


def with_another_type(rows: DataFrame) -> DataFrame:
    """A column of another type."""
    return rows.withColumn("id", F.col("id").cast("string"))


def with_types_by_content(rows: DataFrame) -> DataFrame:
    """Another type as soon as there are rows."""
    return rows if rows.isEmpty() else with_another_type(rows)


def without_coordinates(rows: DataFrame) -> DataFrame:
    """Columns of the platform dropped."""
    return rows.select("id", "name")


def failing(rows: DataFrame) -> DataFrame:
    """A mistake in it."""
    return rows.select("no_such_column")


def returning_nothing(rows: DataFrame) -> None:
    """A forgotten return."""
    rows.filter("id = 1")
