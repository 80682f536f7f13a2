"""Is the topic there, does it keep records long enough, is the stream's position still in it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from ingest_platform.adapters.kafka_admin import KafkaAdmin, Retention
from ingest_platform.errors import IngestError
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.maintain.preflight.findings import (
    DATA,
    USER,
    Finding,
    Group,
    Level,
    of_error,
    ok,
)
from ingest_platform.maintain.topic_bounds import bounds_of, kafka_of
from ingest_platform.model.status import Status
from ingest_platform.spec import StreamSpec

ENOUGH = timedelta(hours=72)  # a failure on Friday evening can be mended on Monday (seed 003)


@dataclass(frozen=True)
class TopicFacts:
    """What the brokers say of one topic: offsets by partition, and how long it keeps records."""

    topic: str
    bounds: Mapping[int, BrokerRange]
    retention: Retention


def read_topics(
    spec: StreamSpec, environ: Mapping[str, str], timeout: float = 10.0
) -> list[TopicFacts | IngestError]:
    """Ask about each topic of a stream; an error stands for a topic that gave no answer."""
    try:
        admin = KafkaAdmin(kafka_of(spec.source, environ), timeout)
    except IngestError as error:
        return [error]
    found: list[TopicFacts | IngestError] = []
    for topic in spec.source.all_topics:
        try:
            found.append(TopicFacts(topic, bounds_of(admin, topic), admin.retention(topic)))
        except IngestError as error:
            found.append(error)
            if error.retryable:
                break  # no broker answers: asking for the next topic would wait as long again
    return found


def check_topics(
    spec: StreamSpec, found: list[TopicFacts | IngestError], status: Status | None
) -> Iterator[Finding]:
    """Judge what the brokers said, and hold the stream's last known position against it."""
    for facts in found:
        if isinstance(facts, IngestError):
            yield of_error(Group.KAFKA, facts, "the stream has nothing to read", spec.name)
            continue
        yield ok(Group.KAFKA, f"topic {facts.topic}: {len(facts.bounds)} partitions", spec.name)
        yield from _retention(spec, facts)
        yield from _compaction(spec, facts)
        if status is not None:
            yield from _position(spec, facts, status.offsets.get(facts.topic, {}))


def _retention(spec: StreamSpec, facts: TopicFacts) -> Iterator[Finding]:
    limit = facts.retention.milliseconds
    kept = timedelta(milliseconds=limit) if limit is not None else None
    if kept is not None and kept < ENOUGH:
        yield Finding(
            Level.WARNING,
            Group.KAFKA,
            f"topic {facts.topic} keeps records for {_hours(kept)}, less than {_hours(ENOUGH)}",
            "records that arrive while the stream is down for longer are lost: a weekend",
            f"kafka-configs.sh --alter --entity-type topics --entity-name {facts.topic} "
            f"--add-config retention.ms={int(ENOUGH.total_seconds() * 1000)}",
            spec.name,
        )
    if facts.retention.bytes_per_partition is not None:
        megabytes = facts.retention.bytes_per_partition / 1e6
        yield Finding(
            Level.WARNING,
            Group.KAFKA,
            f"topic {facts.topic} keeps at most {megabytes:,.1f} MB per partition",
            "at a higher rate it keeps records for a shorter time, whatever retention.ms says",
            f"remove retention.bytes, or make sure that it holds {_hours(ENOUGH)} of records",
            spec.name,
        )


def _compaction(spec: StreamSpec, facts: TopicFacts) -> Iterator[Finding]:
    if facts.retention.compacted and spec.source.gaps == "fail":
        yield Finding(
            Level.ERROR,
            Group.KAFKA,
            f"topic {facts.topic} is compacted, but source.gaps is 'fail'",
            "the first batch with a removed record does not balance and stops the stream",
            "set source.gaps: count, or cleanup.policy=delete",
            spec.name,
            USER,
        )


def _position(spec: StreamSpec, facts: TopicFacts, offsets: Mapping[str, int]) -> Iterator[Finding]:
    for partition, bounds in sorted(facts.bounds.items()):
        position = offsets.get(str(partition))
        if position is None:
            continue
        name = f"{facts.topic}-{partition}"
        if position < bounds.begin:
            yield Finding(
                Level.ERROR,
                Group.KAFKA,
                f"{name} was read up to {position}, but begins at {bounds.begin} now",
                f"{bounds.begin - position} records were deleted before they were read",
                "see docs/operations.md: the gap must be accepted by a person",
                spec.name,
                DATA,
            )
        elif position > bounds.end:
            yield Finding(
                Level.ERROR,
                Group.KAFKA,
                f"{name} was read up to {position}, but ends at {bounds.end} now",
                "the topic was deleted and made anew: its offsets mean other records",
                "see docs/operations.md: the gap must be accepted by a person",
                spec.name,
                DATA,
            )


def _hours(time: timedelta) -> str:
    return f"{time.total_seconds() / 3600:g} h"
