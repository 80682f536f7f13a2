"""Where a repaired stream goes on in its topics, and which offsets it can no longer read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.maintain.repair.cut import Place, positions
from ingest_platform.model.offsets import OffsetRange, OffsetRanges, Positions
from ingest_platform.model.repair import Finding, Symptom

Bounds = Mapping[Place, BrokerRange]


def next_offsets(
    kept: Mapping[Place, int], declared: Positions, bounds: Bounds, recreated: tuple[str, ...]
) -> Positions:
    """Where the next session starts: after what is kept, as far as the topic still holds it.

    Args:
        kept: Where each partition ends in the table.
        declared: Starting offsets that the spec names, for partitions that were never read.
        bounds: What the brokers hold.
        recreated: Topics that start from their beginning.
    """
    start: dict[Place, int] = {}
    for place, there in bounds.items():
        known = kept.get(place, declared.get(*place))
        if place[0] in recreated or known is None or known < 0:
            start[place] = there.begin
        else:
            start[place] = max(known, there.begin)
    return positions(start.items())


def lost_offsets(
    kept: Mapping[Place, int], bounds: Bounds, recreated: tuple[str, ...]
) -> OffsetRanges:
    """Offsets between what is kept and what the topic still holds."""
    return OffsetRanges(
        tuple(
            OffsetRange(*place, end, bounds[place].begin)
            for place, end in sorted(kept.items())
            if place in bounds and place[0] not in recreated and end < bounds[place].begin
        )
    )


def topic_findings(
    kept: Mapping[Place, int], bounds: Bounds, lost: OffsetRanges, recreated: tuple[str, ...]
) -> Iterator[Finding]:
    """What is wrong between table and topics."""
    for r in lost:
        what = f"{r.width} offsets of {r.topic}-{r.partition}, [{r.start}, {r.until}), are deleted"
        yield Finding(Symptom.OFFSETS_LOST, what)
    for name, end in ahead_of_topic(kept, bounds):
        yield Finding(
            Symptom.TOPIC_RECREATED, f"{name} was read further than the topic goes: {end}"
        )
    for topic in recreated:
        yield Finding(Symptom.TOPIC_RECREATED, f"topic {topic} was deleted and made anew")


def ahead_of_topic(kept: Mapping[Place, int], bounds: Bounds) -> Iterator[tuple[str, str]]:
    """Partitions that were read further than they go, and how far they go."""
    for (topic, partition), end in sorted(kept.items()):
        there = bounds.get((topic, partition))
        if there is None and any(place[0] == topic for place in bounds):
            yield f"{topic}-{partition}", "there is no such partition now"
        elif there is not None and end > there.end:
            yield f"{topic}-{partition}", f"up to {end}, and it ends at {there.end}"
