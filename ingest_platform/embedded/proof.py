"""What was produced against what was ingested: the demo's last word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from ingest_platform.embedded.receipts import Receipts
from ingest_platform.maintain.audit.report import AuditReport
from ingest_platform.maintain.audit.run import AuditTarget, examine
from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.maintain.topic_bounds import topic_bounds
from ingest_platform.spec import StorageEnvironment, StreamSpec


@dataclass(frozen=True)
class Proof:
    """The outcome.

    Attributes:
        receipts: What Kafka acknowledged to the producer.
        held: Offsets that Kafka holds, by topic and partition.
        audit: Table and quarantine, against their own ledgers and against Kafka.
        failures: Sentences; none means that nothing is lost and nothing is doubled.
    """

    receipts: Receipts
    held: Mapping[tuple[str, int], BrokerRange]
    audit: AuditReport
    failures: tuple[str, ...]


def prove(spec: StreamSpec, receipts: Receipts, env: Mapping[str, str]) -> Proof:
    """Read log, data and topic, and hold them against each other and the producer's receipts.

    Args:
        spec: The stream, which reads its topic from the beginning; its driver has ended.
        receipts: Of the last producer, which has ended.
        env: How to reach Kafka and S3.

    Raises:
        IngestError: Table or topic cannot be read.
    """
    held = topic_bounds(spec.source, env)
    target = AuditTarget(spec.table.path, spec.table.quarantine, from_earliest=True)
    storage = StorageEnvironment.from_env(env)
    audit = examine(target, storage, datetime.now(UTC), data=True, brokers=lambda: held).report
    failures = (*_of_the_producer(receipts, held, spec), *_of_the_table(audit))
    return Proof(receipts, held, audit, failures)


def _of_the_producer(
    receipts: Receipts, held: Mapping[tuple[str, int], BrokerRange], spec: StreamSpec
) -> Iterator[str]:
    if not receipts.done:
        yield "the producer ended without its last word: its counts are not final"
    if receipts.failed:
        yield f"{receipts.failed:,} records were not acknowledged by Kafka"
    for number, made in receipts.partitions.items():
        name = f"{spec.source.all_topics[0]}-{number}"
        if not made.whole:
            yield (
                f"{made.count:,} records of {name} were acknowledged, but their offsets are "
                f"[{made.start}, {made.next})"
            )
        end = held.get((spec.source.all_topics[0], number), BrokerRange(0, 0)).end
        if end != made.next:
            yield f"Kafka holds {name} up to {end}, but acknowledged it up to {made.next}"


def _of_the_table(audit: AuditReport) -> Iterator[str]:
    for finding in audit.errors:
        yield f"{finding.kind}: {finding.what}"
    unread = sum((audit.lag or {}).values())
    if unread:
        yield f"{unread:,} records were not ingested"
