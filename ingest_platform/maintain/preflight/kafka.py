"""Is the topic there, does it keep records long enough, is the stream's position still in it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ingest_platform.adapters.kafka_admin import KafkaAdmin, Retention
from ingest_platform.adapters.kafka_sample import Sample, newest_records
from ingest_platform.errors import IngestError
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.maintain.preflight.capacity import memory_bytes
from ingest_platform.maintain.preflight.findings import DATA, USER, Finding, of_error, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.maintain.topic_bounds import bounds_of, kafka_of
from ingest_platform.model.offsets import Positions
from ingest_platform.spec import StreamSpec

_SAMPLE_SECONDS = 3.0
_SKEW = timedelta(minutes=1)
_COPIES = 8  # of a record's bytes: as text, in an envelope, parsed, as columns, and to be written


@dataclass(frozen=True)
class TopicFacts:
    """What the brokers say of one topic: offsets by partition, and how long it keeps records."""

    topic: str
    bounds: Mapping[int, BrokerRange]
    retention: Retention
    sample: Sample = field(default_factory=Sample)


def read_topics(
    spec: StreamSpec, environ: Mapping[str, str], timeout: float = 10.0
) -> list[TopicFacts | IngestError]:
    """Ask about each topic of a stream; an error stands for a topic that gave no answer."""
    try:
        kafka = kafka_of(spec.source, environ)
        admin = KafkaAdmin(kafka, timeout)
    except IngestError as error:
        return [error]
    found: list[TopicFacts | IngestError] = []
    for topic in spec.source.all_topics:
        try:
            bounds = bounds_of(admin, topic)
            ends = {partition: (b.begin, b.end) for partition, b in bounds.items()}
            sample = newest_records(kafka, topic, ends, seconds=_SAMPLE_SECONDS)
            found.append(TopicFacts(topic, bounds, admin.retention(topic), sample))
        except IngestError as error:
            found.append(error)
            if error.retryable:
                break  # no broker answers: asking for the next topic would wait as long again
    return found


def check_topics(
    spec: StreamSpec,
    found: list[TopicFacts | IngestError],
    *,
    rate: float = 0.0,
    read: Positions | None = None,
    now: datetime | None = None,
    cores: int = 1,
) -> Iterator[Finding]:
    """Judge what the brokers said, and hold the stream's last known position against it.

    Args:
        spec: The stream.
        found: From `read_topics`.
        rate: Records that arrive per second; 0 if that is not known.
        read: Where the stream goes on.
        now: This machine's clock; dates of records are held against it.
        cores: Tasks that decode at once.
    """
    for facts in found:
        if isinstance(facts, IngestError):
            yield of_error(Group.KAFKA, facts, "the stream has nothing to read", spec.name)
            continue
        yield ok(Group.KAFKA, f"topic {facts.topic}: {len(facts.bounds)} partitions", spec.name)
        yield from _retention(spec, facts, rate)
        yield from _compaction(spec, facts)
        yield from _sizes(spec, facts, cores)
        if now is not None:
            yield from _future(spec, facts, now)
        if read is not None:
            yield from _position(spec, facts, read)


def _retention(spec: StreamSpec, facts: TopicFacts, rate: float) -> Iterator[Finding]:
    limit = facts.retention.milliseconds
    kept = timedelta(milliseconds=limit) if limit is not None else None
    enough = spec.checks.topic_retention
    if kept is not None and kept < enough:
        yield Finding(
            Level.WARNING,
            Group.KAFKA,
            Kind.RETENTION_TIME,
            f"topic {facts.topic} keeps records for {_hours(kept)}, less than {_hours(enough)}",
            "records that arrive while the stream is down for longer are lost",
            f"kafka-configs.sh --alter --entity-type topics --entity-name {facts.topic} "
            f"--add-config retention.ms={int(enough.total_seconds() * 1000)}",
            spec.name,
        )
    if facts.retention.bytes_per_partition is not None:
        yield _retention_of_bytes(spec, facts, facts.retention.bytes_per_partition, rate)


def _retention_of_bytes(spec: StreamSpec, facts: TopicFacts, limit: int, rate: float) -> Finding:
    """How long that is at the present rate, where rate and size of records are known."""
    size = facts.sample.bytes_per_record
    keeps = f"topic {facts.topic} keeps at most {limit / 1e6:,.1f} MB per partition"
    if rate and size:
        lasts = timedelta(seconds=limit * len(facts.bounds) / (rate * size))
        keeps += f", which at {rate:,.0f} records/s of {size:,.0f} bytes lasts {_hours(lasts)}"
        if lasts >= spec.checks.topic_retention:
            return ok(Group.KAFKA, keeps, spec.name)
    return Finding(
        Level.WARNING,
        Group.KAFKA,
        Kind.RETENTION_BYTES,
        keeps,
        "at a higher rate it keeps records for a shorter time, whatever retention.ms says",
        f"remove retention.bytes, or let it hold {_hours(spec.checks.topic_retention)} of records",
        spec.name,
    )


def _compaction(spec: StreamSpec, facts: TopicFacts) -> Iterator[Finding]:
    if facts.retention.compacted and spec.source.gaps == "fail":
        yield Finding(
            Level.ERROR,
            Group.KAFKA,
            Kind.COMPACTED,
            f"topic {facts.topic} is compacted, but source.gaps is 'fail'",
            "the first batch with a removed record does not balance and stops the stream",
            "set source.gaps: count, or cleanup.policy=delete",
            spec.name,
            USER,
        )
    elif facts.sample.gaps and spec.source.gaps == "fail":
        yield Finding(
            Level.ERROR,
            Group.KAFKA,
            Kind.TRANSACTIONS,
            f"topic {facts.topic} has {facts.sample.gaps} offsets without a record among its "
            "newest: producers use transactions, or it was compacted once",
            "the first batch with such an offset does not balance and stops the stream",
            "set source.gaps: count",
            spec.name,
            USER,
        )


def _sizes(spec: StreamSpec, facts: TopicFacts, cores: int) -> Iterator[Finding]:
    """Each core decodes one record at a time, and holds it some times over while it does."""
    largest, heap = facts.retention.message_bytes, memory_bytes(spec.spark.driver_memory)
    held = (largest or 0) * cores * _COPIES
    if largest and held > heap / 2:
        yield Finding(
            Level.WARNING,
            Group.KAFKA,
            Kind.RECORD_SIZE,
            f"topic {facts.topic} takes records of up to {largest / 1e6:,.1f} MB",
            f"a batch of such records needs {held / 1e6:,.0f} MB of the {heap / 1e6:,.0f} MB heap",
            "raise spark.driver_memory, or lower the topic's max.message.bytes",
            spec.name,
        )


def _future(spec: StreamSpec, facts: TopicFacts, now: datetime) -> Iterator[Finding]:
    ahead = timedelta(milliseconds=facts.sample.newest_ms) - timedelta(seconds=now.timestamp())
    if ahead > _SKEW:
        yield Finding(
            Level.WARNING,
            Group.KAFKA,
            Kind.RECORD_CLOCK,
            f"the newest record of {facts.topic} is dated {ahead.total_seconds():,.0f} s ahead of "
            "this machine's clock",
            "lag, freshness and partitions by time mislead people",
            "synchronise the clocks (NTP) of brokers, producers and this machine",
            spec.name,
        )


def _position(spec: StreamSpec, facts: TopicFacts, read: Positions) -> Iterator[Finding]:
    for partition, bounds in sorted(facts.bounds.items()):
        position = read.get(facts.topic, partition)
        if position is None:
            continue
        name = f"{facts.topic}-{partition}"
        if position < bounds.begin:
            yield Finding(
                Level.ERROR,
                Group.KAFKA,
                Kind.OFFSETS_DELETED,
                f"{name} was read up to {position}, but begins at {bounds.begin} now",
                f"{bounds.begin - position} records were deleted before they were read",
                f"see what it would give up: ingest-platform repair plan {spec.name} --accept-gap",
                spec.name,
                DATA,
            )
        elif position > bounds.end:
            yield Finding(
                Level.ERROR,
                Group.KAFKA,
                Kind.TOPIC_RECREATED,
                f"{name} was read up to {position}, but ends at {bounds.end} now",
                "the topic was deleted and made anew: its offsets mean other records",
                f"see: ingest-platform repair plan {spec.name} --topic-recreated",
                spec.name,
                DATA,
            )


def _hours(time: timedelta) -> str:
    return f"{time.total_seconds() / 3600:.3g} h"
