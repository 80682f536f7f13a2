"""Back to inline after a yield, and how a table finds its way out again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingest_platform.maintain.auto_compaction.fallback import FallbackPolicy, Standing

POLICY = FallbackPolicy(heal_after=100.0, heal_cap=350.0)


def test_one_yield_is_enough_and_heals_by_time() -> None:
    fallen = Standing().after_yield(POLICY, now=1000.0)
    assert fallen.inline(1000.0)
    assert fallen.inline(1099.9)
    assert not fallen.inline(1100.0)


def test_each_relapse_waits_twice_as_long_up_to_the_cap() -> None:
    """A table with DML all day must not try again every quarter of an hour."""
    standing, now, waits = Standing(), 0.0, []
    for _ in range(4):
        standing = standing.after_yield(POLICY, now)
        waits.append(standing.wait)
        now += standing.wait
    assert waits == [100.0, 200.0, 350.0, 350.0]


def test_success_makes_the_wait_short_again() -> None:
    relapsed = Standing().after_yield(POLICY, 0.0).after_yield(POLICY, 100.0)
    assert relapsed.wait == 200.0
    assert relapsed.after_success().after_yield(POLICY, 500.0).wait == 100.0


def test_yield_while_inline_prolongs_nothing() -> None:
    """A straggler that was under way when the table fell back tells nothing new."""
    fallen = Standing().after_yield(POLICY, 0.0)
    assert fallen.after_yield(POLICY, 50.0) == fallen


def test_switched_off_it_never_falls_back() -> None:
    policy = FallbackPolicy(enabled=False)
    assert not Standing().after_yield(policy, 0.0).inline(0.0)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 1000.0)), max_size=30))
def test_never_inline_for_longer_than_the_cap(steps: list[tuple[bool, float]]) -> None:
    """However it went before, a table without DML is asynchronous again after the cap."""
    standing, now = Standing(), 0.0
    for yielded, pause in steps:
        now += pause
        standing = standing.after_yield(POLICY, now) if yielded else standing.after_success()
    assert not standing.inline(now + POLICY.heal_cap)
