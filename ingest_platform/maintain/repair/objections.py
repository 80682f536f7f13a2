"""What speaks against a plan: decisions that only a person can take, and things to know before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingest_platform.maintain.repair.next_offsets import Bounds, ahead_of_topic
from ingest_platform.model.repair import Removal, RepairPlan

_NAMED = 5


def with_objections(plan: RepairPlan, bounds: Bounds, foreign: Sequence[int]) -> RepairPlan:
    """The plan, with what blocks it and what to know before.

    Args:
        plan: As found.
        bounds: What the brokers hold.
        foreign: Versions beyond the cut in which other writers changed rows.
    """
    blocked = (
        *_of_gaps(plan),
        *_of_topics(plan, bounds),
        *_of_restore(plan, foreign),
    )
    return replace(plan, blocked=blocked, warnings=tuple(_warnings(plan, foreign)))


def _of_gaps(plan: RepairPlan) -> Iterator[str]:
    accepted = plan.record.accepted
    if not accepted.ranges or plan.wishes.accept_gap:
        return
    named = ", ".join(f"{r.topic}-{r.partition} [{r.start}, {r.until})" for r in accepted)
    also = "their rows would be removed, and " if plan.undone else ""
    yield (
        f"the topic no longer holds {accepted.width} offsets: {named}; {also}they can not be read "
        "again: give them up with --accept-gap"
    )


def _of_topics(plan: RepairPlan, bounds: Bounds) -> Iterator[str]:
    kept = {(topic, partition): end for topic, partition, end in plan.record.kept}
    for name, end in ahead_of_topic(kept, bounds):
        if name.rpartition("-")[0] not in plan.record.recreated:
            yield (
                f"{name} was read further than the topic goes ({end}): if the topic was deleted "
                "and made anew, say so with --topic-recreated; if not, brokers lost records"
            )


def _of_restore(plan: RepairPlan, foreign: Sequence[int]) -> Iterator[str]:
    if plan.removal is Removal.RESTORE and plan.undone and foreign:
        yield (
            "rows can only be removed by RESTORE here (their coordinates do not tell them apart), "
            f"which would also undo what other writers did in versions {_versions(foreign)}: if "
            f"they can do that again, RESTORE the table to version {plan.record.kept_version} "
            "yourself, and plan again"
        )


def _warnings(plan: RepairPlan, foreign: Sequence[int]) -> Iterator[str]:
    if plan.record.recreated:
        yield "what was unread in the deleted topic is lost; its rows in the table stay"
    if foreign and plan.undone:
        yield f"other writers changed rows in versions {_versions(foreign)}"


def _versions(found: Sequence[int]) -> str:
    more = " and more" if len(found) > _NAMED else ""
    return f"{', '.join(map(str, found[:_NAMED]))}{more}"
