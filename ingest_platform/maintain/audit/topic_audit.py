"""The third proof: what was read, against what the brokers say was produced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ingest_platform.maintain.audit.report import AuditReport, Finding, Kind, Level, ProvenRange

_Key = tuple[str, int]


@dataclass(frozen=True)
class BrokerRange:
    """What a broker holds of a partition: offsets `[begin, end)`."""

    begin: int
    end: int


def audit_topic(
    report: AuditReport, broker: Mapping[_Key, BrokerRange], *, from_earliest: bool
) -> AuditReport:
    """Compare the proven ranges with the partitions' bounds, and count what is still unread.

    Args:
        report: The outcome of the log's audit.
        broker: Bounds by topic and partition, asked after the log was read.
        from_earliest: The stream was to read from the topic's beginning, so offsets that are
            there but before the first proven one should have been read.
    """
    current = [p for p in report.proven if p.incarnation == report.incarnations.get(p.topic, 0)]
    first, last = _bounds(current)
    for key in broker.keys() | last.keys():  # accepted gaps count as read
        accepted = report.accepted.get(f"{key[0]}-{key[1]}")
        if accepted is not None and not report.incarnations.get(key[0]):
            last[key] = max(last.get(key, 0), accepted)
    # What expired log entries held is not missing, only no longer proved.
    all_proven = from_earliest and not report.first_version
    findings: list[Finding] = []
    lag: dict[str, int] = {}
    for key in sorted(broker.keys() | last.keys()):
        bounds = broker.get(key)
        if bounds is None:
            what = f"{key[0]}-{key[1]} was read, but the topic has no such partition now"
            findings.append(Finding(Kind.TOPIC_RECREATED, what, Level.ERROR, *key))
            continue
        position = last.get(key, bounds.begin)
        lag[f"{key[0]}-{key[1]}"] = max(0, bounds.end - max(position, bounds.begin))
        if key in last:
            findings += _ahead(key, position, bounds)
        if key in first:
            findings += _before(key, first[key], bounds, all_proven=all_proven)
    return report.with_findings(findings, lag=lag)


def _bounds(proven: Iterable[ProvenRange]) -> tuple[dict[_Key, int], dict[_Key, int]]:
    """First proven offset and the one after the last, by partition."""
    first: dict[_Key, int] = {}
    last: dict[_Key, int] = {}
    for item in proven:
        key = (item.topic, item.partition)
        first[key] = min(item.start, first.get(key, item.start))
        last[key] = max(item.until, last.get(key, item.until))
    return first, last


def _ahead(key: _Key, position: int, bounds: BrokerRange) -> Iterator[Finding]:
    name = f"{key[0]}-{key[1]}"
    if bounds.begin > position:
        what = (
            f"{bounds.begin - position} offsets of {name}, [{position}, {bounds.begin}), were "
            "deleted by the broker before they were read"
        )
        yield Finding(Kind.LOST, what, Level.ERROR, *key, position, bounds.begin)
    if bounds.end < position:
        what = f"{name} was read up to {position}, but the broker's log ends at {bounds.end}"
        yield Finding(Kind.TOPIC_RECREATED, what, Level.ERROR, *key, bounds.end, position)


def _before(key: _Key, first: int, bounds: BrokerRange, *, all_proven: bool) -> Iterator[Finding]:
    if bounds.begin < first:
        what = (
            f"{first - bounds.begin} offsets of {key[0]}-{key[1]}, [{bounds.begin}, {first}), are "
            "in the topic but before the first one that the log proves"
        )
        level = Level.ERROR if all_proven else Level.NOTE
        yield Finding(Kind.NEVER_READ, what, level, *key, bounds.begin, first)
