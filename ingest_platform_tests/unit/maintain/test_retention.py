"""What a vacuum keeps: what the table promises, or a refusal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ingest_platform.errors import UnsafeRetentionError
from ingest_platform.maintain.vacuum.retention import retention

WEEK = {"delta.deletedFileRetentionDuration": "interval 7 days"}
HOUR = timedelta(hours=1)


def kept(properties, **wanted):
    return retention(properties, where="/lake/t", **wanted)


def test_the_table_s_property_counts():
    assert kept({"delta.deletedFileRetentionDuration": "interval 36 hours"}).keep == 36 * HOUR
    assert kept({}).keep == timedelta(days=7), "Delta's own default"
    assert kept(WEEK).hours is None


def test_more_may_be_kept_than_was_promised():
    found = kept(WEEK, wanted=timedelta(days=14))
    assert (found.hours, found.overridden) == (14 * 24, None)


@pytest.mark.parametrize(
    ("properties", "wanted", "said"),
    [
        (WEEK, 24 * HOUR, "the table promises 7 days"),
        (WEEK, timedelta(0), "the table promises 7 days"),
        ({"delta.deletedFileRetentionDuration": "interval 5 minutes"}, None, "5 minutes only"),
    ],
)
def test_less_is_refused_unless_someone_says_why(properties, wanted, said):
    """A query of yesterday would fail half way, or a batch lose what it has just written."""
    with pytest.raises(UnsafeRetentionError, match=said) as refused:
        kept(properties, wanted=wanted)
    assert "--unsafe-retention" in refused.value.remedy
    assert refused.value.exit_code == 2
    found = kept(properties, wanted=wanted, override="all readers are stopped")
    assert found.overridden == "all readers are stopped"


def test_an_override_of_what_is_safe_anyway_is_none():
    assert kept(WEEK, wanted=8 * 24 * HOUR, override="to be sure").overridden is None


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({**WEEK, "delta.logRetentionDuration": "interval 1 days"}, "the log is kept for 24 hours"),
        ({"delta.deletedFileRetentionDuration": "a week"}, "is not an interval"),
    ],
)
def test_properties_that_contradict_themselves_are_refused(properties, said):
    with pytest.raises(UnsafeRetentionError, match=said):
        kept(properties, override="whatever")


def test_only_whole_hours_can_be_asked_for():
    with pytest.raises(UnsafeRetentionError, match="whole number of hours"):
        kept(WEEK, wanted=timedelta(minutes=90), override="why not")
