"""A driver refuses what `check` calls an error, and logs what it warns of."""

from __future__ import annotations

import pytest

from ingest_platform.drivers.fitness import refuse_unfit
from ingest_platform.errors import EnvironmentFault, UserError
from ingest_platform_tests.factories import make_spec


def test_a_sound_spec_starts_without_a_word(caplog) -> None:
    refuse_unfit(make_spec(), {})
    assert caplog.text == ""


def test_a_warning_is_logged(caplog) -> None:
    """The driver runs on: a person may know better."""
    refuse_unfit(make_spec(spark={"conf": {"spark.jars.packages": "a:b:1"}}), {})
    assert "spark.jars.packages is a:b:1" in caplog.text


def test_an_error_is_refused_with_its_remedy_and_code(tmp_path) -> None:
    conf = {"spark.driver.extraClassPath": str(tmp_path / "none.jar")}
    with pytest.raises(UserError, match=r"which is not there.*\n.*\n  remedy: mend the path"):
        refuse_unfit(make_spec(spark={"conf": conf}), {})
    other = {"spark.pyspark.python": "/no/such/python"}
    with pytest.raises(EnvironmentFault, match="cannot be run here"):
        refuse_unfit(make_spec(spark={"conf": other}), {})
