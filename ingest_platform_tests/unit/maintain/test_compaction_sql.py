"""The OPTIMIZE statement: the right partitions, whatever their values are."""

from __future__ import annotations

import pytest

from ingest_platform.maintain.compaction.plan import Batch, Work
from ingest_platform.maintain.compaction.sql import optimize_statement
from ingest_platform.model.data_file import Partition


def batch(*partitions: Partition) -> Batch:
    return Batch(tuple(Work(p, 100, 2, 50, 1, settled=True) for p in partitions))


def test_a_table_without_partitions_has_no_condition():
    assert optimize_statement("/lake/t", batch(()), {}) == "OPTIMIZE delta.`/lake/t`"


def test_partitions_are_named_by_their_values():
    found = optimize_statement(
        "/lake/t",
        batch((("day", "2026-01-31"), ("n", "7")), (("day", None), ("n", "8"))),
        {"day": "date", "n": "int"},
        ["user"],
    )
    assert found == (
        "OPTIMIZE delta.`/lake/t` WHERE "
        "(`day` = CAST('2026-01-31' AS date) AND `n` = CAST('7' AS int)) OR "
        "(`day` IS NULL AND `n` = CAST('8' AS int)) ZORDER BY (`user`)"
    )


@pytest.mark.parametrize(
    ("value", "literal"),
    [("it's", r"'it\'s'"), ("a\\b", r"'a\\b'"), ("`x` OR 1=1", "'`x` OR 1=1'")],
)
def test_values_cannot_end_their_literal(value, literal):
    """Partition values are data: whoever writes a record chooses them."""
    assert literal in optimize_statement("/t", batch((("c", value),)), {"c": "string"})


def test_column_names_cannot_end_their_quotes():
    assert "`a``b` IS NULL" in optimize_statement("/t", batch((("a`b", None),)), {"a`b": "string"})
