"""One look of the alerts' sensor: see, decide, write the outbox, deliver; within a minute."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg

from ingest_platform.adapters.alerts.channels import variables
from ingest_platform.adapters.alerts.delivery import Delivery, Outcome
from ingest_platform.adapters.alerts.outboxes import Outboxes, spare_path
from ingest_platform.adapters.alerts.redaction import Redaction
from ingest_platform.adapters.stores import Stores
from ingest_platform.components.alert_facts import check_verdicts, lag_verdicts, run_outcomes
from ingest_platform.errors import IngestError
from ingest_platform.model.contact import Contact, Watch
from ingest_platform.model.status import Status
from ingest_platform.spec import KafkaEnvironment, StorageEnvironment, StreamSpec
from ingest_platform.spec.alerts import AlertsSpec
from ingest_platform.supervise.alerting.conditions import find
from ingest_platform.supervise.alerting.facts import StreamFacts
from ingest_platform.supervise.alerting.settle import Change, Watched, settle

if TYPE_CHECKING:
    from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph

log = logging.getLogger(__name__)

_PARALLEL = 16
_TICK_SECONDS = 52.0  # Dagster gives a tick 60
_LEAST_SECONDS = 5.0


@dataclass(frozen=True)
class AlertTick:
    """One look at everything.

    Attributes:
        spec: Channels and limits.
        streams: All of the deployment.
        storage: How to reach their state.
        environ: For the channels' secrets.
        clock: The present time, aware.
        began: When the tick began, by the monotonic clock.
    """

    spec: AlertsSpec
    streams: Sequence[StreamSpec]
    storage: StorageEnvironment
    environ: Mapping[str, str]
    clock: Callable[[], datetime]
    began: float = field(default_factory=time.monotonic)

    def result(
        self, instance: dg.DagsterInstance, graph: BaseAssetGraph | None, cursor: str | None
    ) -> dg.SensorResult:
        """What Dagster is told. The cursor moves only after the outbox was written."""
        watched, now = Watched.from_cursor(cursor), self.clock()
        outboxes = Outboxes.look(self.streams, self.storage, spare_path(self.spec, self.environ))
        facts, watched = self._facts(outboxes, watched, now)
        facts = _with_verdicts(facts, instance, graph)
        runs, until = run_outcomes(instance, self._names, watched.runs_until, now)
        by_root = outboxes.open_keys(watched.open)
        before = {key for keys in by_root.values() for key in keys}
        change = settle(
            find(facts, runs, self.spec, now),
            before,
            self._names,
            watched,
            resolve_after=self.spec.resolve_after,
            now=now,
        )
        self._write(outboxes, change, now)
        after = (before | {alert.key for alert in change.raised}) - set(change.resolved)
        watched = replace(
            watched, since=change.since, well=change.well, open=by_root, runs_until=until
        )
        text = _text(sorted(after), self._deliver(outboxes))
        return dg.SensorResult(skip_reason=text, cursor=watched.to_cursor())

    @property
    def _names(self) -> list[str]:
        return [spec.name for spec in self.streams]

    def _write(self, outboxes: Outboxes, change: Change, now: datetime) -> None:
        secrets = [name for channel in self.spec.channels for name in variables(channel)]
        redaction = Redaction.of(self.environ, secrets)
        for alert in map(redaction.alert, change.raised):
            if outboxes.raise_(alert, now):
                log.warning("alert raised: %s: %s", alert.key, alert.what)
        for key, why in change.resolved.items():
            outboxes.resolve(key, why, now)
            log.info("alert resolved: %s: %s", key, why)

    def _deliver(self, outboxes: Outboxes) -> Outcome:
        left = _TICK_SECONDS - (time.monotonic() - self.began)
        try:
            delivery = Delivery(self.spec, self.environ, self.clock)
            return delivery.deliver(outboxes.usable, max(_LEAST_SECONDS, left))
        except IngestError as error:
            # Everything stays in the outbox, for the next tick.
            log.warning("alerts wait: %s", error)
            return Outcome(failed={"outbox": error.what})

    def _facts(
        self, outboxes: Outboxes, watched: Watched, now: datetime
    ) -> tuple[list[StreamFacts], Watched]:
        faults = dict(outboxes.faults)

        def read(spec: StreamSpec) -> tuple[Status | None, Contact | None]:
            # One stream that could not be read answers for all others of that root: 200 of them,
            # each waiting for a store that is away, would take longer than a tick has.
            if spec.root not in faults:
                try:
                    stores = Stores.of(spec, self.storage)
                    return stores.status.read(spec.name), stores.contact.read()
                except IngestError as error:
                    faults[spec.root] = error.what
            return None, None

        with ThreadPoolExecutor(_PARALLEL) as pool:
            found = dict(zip(self._names, pool.map(read, self.streams), strict=True))
        contacts = {
            name: watched.contacts.get(name, Watch()).look(contact.at if contact else "", now)
            for name, (_, contact) in found.items()
        }
        facts = [
            StreamFacts(
                spec=spec,
                kafka=self._kafka(spec),
                status=found[spec.name][0],
                contact=found[spec.name][1],
                silent=contacts[spec.name].quiet(now),
                storage_fault=faults.get(spec.root, ""),
                storage=spec.root,
            )
            for spec in self.streams
        ]
        return facts, replace(watched, contacts=contacts)

    def _kafka(self, spec: StreamSpec) -> str:
        # Incomplete credentials are the driver's to tell; here only the address counts.
        with suppress(IngestError):
            return KafkaEnvironment.for_source(spec.source, self.environ).bootstrap_servers
        return spec.source.bootstrap_servers or spec.source.environment_prefix


def _with_verdicts(
    facts: Sequence[StreamFacts], instance: dg.DagsterInstance, graph: BaseAssetGraph | None
) -> list[StreamFacts]:
    """The facts, with what Dagster last judged."""
    names = [f.spec.name for f in facts]
    lags = lag_verdicts(instance, graph, names) if graph else {}
    checks = check_verdicts(instance, graph, names) if graph else {}
    return [
        replace(f, lag=lags.get(f.spec.name), checks=tuple(checks.get(f.spec.name, ())))
        for f in facts
    ]


def _text(open_keys: Sequence[str], outcome: Outcome) -> str:
    parts = [f"{len(open_keys)} open: {', '.join(open_keys)}" if open_keys else "all is well"]
    if outcome.sent:
        parts.append(f"{len(outcome.sent)} told")
    parts += [f"{channel}: {reason}" for channel, reason in outcome.failed.items()]
    if outcome.left:
        parts.append(f"{outcome.left} to be told again")
    return "; ".join(parts)
