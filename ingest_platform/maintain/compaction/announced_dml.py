"""Compaction keeps out of the way of DML that was announced with `dml_in_flight`, within bounds.

An OPTIMIZE that wins against a MERGE throws away what may be minutes of a person's work; compaction
loses nothing by coming later. But DML that never ends, or a marker of a process that died, must not
hold up a run for ever: after a while the table's batches are given up, and the next run tries
again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.maintain.auto_compaction.markers import MarkerReader, markers_uri

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 120.0

_POLL_SECONDS: Final = 2.0
_TTLS: Final = 1.25  # an abandoned marker is known as one after its time to live


class DmlInFlightError(Exception):
    """Announced DML outlasted a run's patience."""


class AnnouncedDml:
    """The announced DML of one table, for one run.

    Attributes:
        markers: URI of the folder of the markers, for the LogStore's last look.
    """

    def __init__(
        self,
        objects: ObjectStore,
        table: str,
        *,
        patience: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind to the state of the table's stream; `patience` (seconds) is for the whole run."""
        self.markers = markers_uri(objects, table)
        self._reader = MarkerReader(objects, table)
        self._table, self._patience = table, patience
        self._clock, self._sleep = clock, sleep
        self._waited = 0.0

    def wait(self) -> None:
        """Return when no DML is in flight.

        Raises:
            DmlInFlightError: The run's patience is used up.
            IngestError: The markers cannot be read.
        """
        while found := self._reader.in_flight(self._clock()):
            by = ", ".join(marker.by for marker in found)
            if not self._waited:
                log.info("%s: waiting for DML in flight (%s)", self._table, by)
            if self._waited > max(self._patience, *(_TTLS * marker.ttl for marker in found)):
                raise DmlInFlightError(f"DML in flight: {by}")
            self._sleep(_POLL_SECONDS)
            self._waited += _POLL_SECONDS
