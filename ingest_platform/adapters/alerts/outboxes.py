"""All outboxes of a deployment: one below each root of the streams' state, and a spare one.

An alert goes where its stream's state is. If that storage is away, which is when people must be
told, it goes into the spare one, on a local path.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ingest_platform.adapters.alerts.outbox import Outbox, Shelf
from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.adapters.objects import object_store
from ingest_platform.errors import IngestError
from ingest_platform.model.alert import DEPLOYMENT, Alert
from ingest_platform.spec import StorageEnvironment, StreamSpec
from ingest_platform.spec.alerts import AlertsSpec

log = logging.getLogger(__name__)

_PARALLEL = 16


def spare_path(spec: AlertsSpec, environ: Mapping[str, str]) -> Path:
    """Where the spare outbox is."""
    named = spec.spare_path or environ.get("INGEST_ALERTS_DIR") or ".ingest/alerts"
    return Path(named.removeprefix("file://")).absolute()


@dataclass(frozen=True)
class Outboxes:
    """The outboxes of a deployment, and what a look at them found.

    Attributes:
        roots: The root of each stream's state, by name; deployment-wide alerts are with the first.
        found: What each readable outbox holds, by root; the spare one is under the empty root.
        faults: Why the others cannot be read.
    """

    roots: Mapping[str, str]
    boxes: Mapping[str, Outbox]
    found: Mapping[str, dict[str, Shelf]]
    faults: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def look(
        cls, streams: Sequence[StreamSpec], storage: StorageEnvironment, spare: Path
    ) -> Outboxes:
        """Read the names in all of them, side by side: one that is away takes its 20 s."""
        roots = {spec.name: spec.root for spec in sorted(streams, key=lambda s: s.name)}
        boxes = {root: Outbox(object_store(root, storage)) for root in set(roots.values())}
        boxes[""] = Outbox(LocalObjects(spare))
        wanted = {*roots, DEPLOYMENT}
        faults: dict[str, str] = {}

        def read(root: str) -> dict[str, Shelf] | None:
            try:
                return boxes[root].shelves(wanted)
            except IngestError as error:
                faults[root] = error.what
                return None

        with ThreadPoolExecutor(_PARALLEL) as pool:
            read_all = dict(zip(boxes, pool.map(read, boxes), strict=True))
        found = {root: shelves for root, shelves in read_all.items() if shelves is not None}
        return cls(roots, boxes, found, faults)

    @property
    def usable(self) -> list[Outbox]:
        """Those that can be read now."""
        return [self.boxes[root] for root in self.found]

    def open_keys(self, remembered: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Open alerts by root; of an outbox that is away, those that were open when it was not."""
        known = {r: [k for k, shelf in s.items() if shelf.open] for r, s in self.found.items()}
        return {root: known.get(root, list(remembered.get(root, ()))) for root in self.boxes}

    def raise_(self, alert: Alert, now: datetime) -> bool:
        """Write a new alert; False if it was there already, or can be written nowhere."""
        for root in (self.home(alert.stream), ""):
            if root not in self.found:
                continue
            try:
                shelf = self.found[root].get(alert.key)
                return self.boxes[root].raise_(alert, shelf, now) is not None
            except IngestError as error:
                log.warning("the alert %s cannot be stored: %s", alert.key, error)
        return False

    def resolve(self, key: str, why: str, now: datetime) -> None:
        """Resolve the alert wherever it is open."""
        for root, shelves in self.found.items():
            shelf = shelves.get(key)
            if shelf is None or not shelf.open:
                continue
            try:
                self.boxes[root].resolve(key, shelf, why, now)
            except IngestError as error:
                log.warning("the alert %s stays open for now: %s", key, error)

    def home(self, stream: str) -> str:
        """The root that alerts of a stream, or of the deployment, belong to."""
        if stream in self.roots:
            return self.roots[stream]
        return next(iter(self.roots.values()), "")
