"""The `maintenance` section: sizes, and intervals that a clock can keep."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ingest_platform.spec import CompactionSpec, MaintenanceSpec, VacuumSpec
from ingest_platform_tests.factories import make_spec


@pytest.mark.parametrize(
    ("text", "size"),
    [("256m", 256 << 20), ("20 GB", 20 << 30), ("1GiB", 1 << 30), ("4096", 4096), (7, 7)],
)
def test_sizes(text, size):
    assert CompactionSpec.model_validate({"max_bytes": text}).max_bytes == size


@pytest.mark.parametrize("text", ["lots", "-1", "0", "1.5m"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValidationError, match="max_bytes"):
        CompactionSpec.model_validate({"max_bytes": text})


@pytest.mark.parametrize(
    ("every", "cron", "name"),
    [
        ("1 minute", "*/1 * * * *", "1m"),
        ("15 minutes", "*/15 * * * *", "15m"),
        ("1h", "0 */1 * * *", "1h"),
        ("6 hours", "0 */6 * * *", "6h"),
        ("1 day", "0 0 * * *", "1d"),
    ],
)
def test_intervals_become_cron_expressions(every, cron, name):
    spec = VacuumSpec.model_validate({"every": every, "full_every": "1 day"})
    assert (spec.cron, spec.interval_name) == (cron, name)


@pytest.mark.parametrize("every", ["7 minutes", "90 seconds", "5h", "2 days", "0s"])
def test_intervals_that_drift_against_the_clock_are_refused(every):
    """Cron would run `*/7` at :56 and again at :00."""
    with pytest.raises(ValidationError, match="must divide an hour or a day"):
        CompactionSpec.model_validate({"every": every})


def test_defaults_are_those_that_the_docs_promise():
    found = make_spec().maintenance
    assert found.compaction.cron == "*/15 * * * *"
    assert found.vacuum.cron == "0 */1 * * *"
    assert found.lane == "shared"


def test_unfit_combinations_are_refused():
    with pytest.raises(ValidationError, match="full_every"):
        MaintenanceSpec.model_validate({"vacuum": {"every": "1 hour", "full_every": "15 minutes"}})
    with pytest.raises(ValidationError, match="at least 2 minutes"):
        MaintenanceSpec.model_validate({"timeout": "1 minute"})
