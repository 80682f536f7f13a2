"""When a table goes back to inline compaction, and when it tries the asynchronous one again.

On a table with DML all day long every attempt yields, and its Spark jobs are for nothing. So one
yield sends the table back to Delta's inline compaction, which nobody interrupts. That need not be
for good: the DML may have been one nightly MERGE. After `heal_after` the table tries again; each
relapse doubles the wait, and a compaction that got through makes it short again.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FallbackPolicy:
    """Seconds. Without `enabled`, a table stays asynchronous however often it yields."""

    enabled: bool = True
    heal_after: float = 15 * 60.0
    heal_cap: float = 6 * 3600.0


@dataclass(frozen=True)
class Standing:
    """What is remembered of one table; times are the caller's monotonic seconds.

    Attributes:
        inline_until: Compaction is inline before this time; None if it never fell back since its
            last success.
        wait: Seconds that the last fallback lasts; 0 if there was none.
    """

    inline_until: float | None = None
    wait: float = 0.0

    def inline(self, now: float) -> bool:
        """Whether the table's compaction is inline at `now`."""
        return self.inline_until is not None and now < self.inline_until

    def after_yield(self, policy: FallbackPolicy, now: float) -> Standing:
        """An attempt yielded at `now`."""
        if not policy.enabled or self.inline(now):
            return self
        wait = min(policy.heal_cap, max(policy.heal_after, 2 * self.wait))
        return Standing(now + wait, wait)

    def after_success(self) -> Standing:
        """An attempt got through: what happened before tells nothing any more."""
        return Standing()
