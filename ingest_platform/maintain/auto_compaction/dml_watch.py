"""Whether DML on a table is in flight, in this driver or another, as an attempt asks it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.errors import IngestError
from ingest_platform.maintain.auto_compaction.in_flight import LISTENERS
from ingest_platform.maintain.auto_compaction.markers import MarkerReader

log = logging.getLogger(__name__)

# One small listing; only while an OPTIMIZE runs.
_POLL_SECONDS: Final = 2.0


class MarkedDml:
    """DML that was announced with `dml_in_flight`: this process's at once, others' by polling."""

    def __init__(self, objects: ObjectStore, *, poll_seconds: float = _POLL_SECONDS) -> None:
        self._objects, self._poll_seconds = objects, poll_seconds
        self._readers: dict[str, MarkerReader] = {}
        self._lock = threading.Lock()

    def in_flight(self, table: str) -> bool:
        """Whether a marker that counts is there.

        Raises:
            IngestError: The markers cannot be read.
        """
        with self._lock:
            reader = self._readers.setdefault(table, MarkerReader(self._objects, table))
            found = reader.in_flight(time.monotonic())
        if found:
            log.info("DML on %s in flight: %s", table, ", ".join(m.by for m in found))
        return bool(found)

    @contextmanager
    def watching(
        self, table: str, begun: Callable[[], None], gone: threading.Event
    ) -> Iterator[None]:
        """Have `begun` called when DML begins while the block runs."""
        over = threading.Event()

        def poll() -> None:
            while not over.wait(self._poll_seconds):
                try:
                    if self.in_flight(table):
                        begun()
                        return
                except IngestError as error:
                    # The LogStore asks again before the commit, and does not commit unanswered.
                    log.warning("markers of DML cannot be read: %s", error.what)

        poller = threading.Thread(target=poll, name="dml-watch", daemon=True)
        with LISTENERS.listening(table, begun, gone):
            poller.start()
            try:
                yield
            finally:
                over.set()
                poller.join()
