"""The dead man's switch: the driver notices that nobody supervises it, and tells a person.

Dagster cannot alert on its own failing or missing ticks. The alert goes through the same outbox and
under the same key as the alerts' sensor would use, so that both together tell it once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from ingest_platform.adapters.alerts.delivery import Delivery
from ingest_platform.adapters.alerts.outbox import Outbox
from ingest_platform.adapters.contact_store import ContactStore
from ingest_platform.model.contact import Watch
from ingest_platform.supervise.alerting.conditions import silent_alert

log = logging.getLogger(__name__)

_DELIVER_SECONDS = 45.0


class SupervisorWatch:
    """Watches one stream's contact.

    Args:
        stream: Its name.
        contacts: Where the supervisor leaves its contact.
        outbox: Of the stream.
        delivery: To the deployment's channels, which also says which silence is told; without
            any, the outbox keeps the alert for the alerts' sensor.
        clock: The present time, aware.
    """

    def __init__(
        self,
        stream: str,
        contacts: ContactStore,
        outbox: Outbox,
        delivery: Delivery,
        clock: Callable[[], datetime],
    ) -> None:
        self._stream, self._contacts, self._outbox = stream, contacts, outbox
        self._delivery, self._clock = delivery, clock
        self._bound = delivery.spec.supervisor_silent_after
        self._watch = Watch()
        self._open: bool | None = None  # not known: a predecessor may have raised it
        self._undelivered = True
        self._key = silent_alert(stream, 0, clock()).key

    def look(self) -> timedelta | None:
        """Look once, and tell what there is to tell.

        Returns:
            How long the supervisor has been silent; None if it never spoke: then the driver was
            started by hand, and nobody is missing.

        Raises:
            IngestError: The storage is away; nobody is blamed for that time.
        """
        contact, now = self._contacts.read(), self._clock()
        mark, before = contact.at if contact else "", self._watch.mark
        self._watch = self._watch.look(mark, now)
        silent = self._watch.quiet(now)
        if silent >= self._bound:
            self._raise(silent, now)
        elif before and mark != before:  # an old contact that just lies there proves nothing
            self._resolve(now)
        self._deliver()
        return silent if contact else None

    def _deliver(self) -> None:
        if self._undelivered and self._delivery.spec.channels:
            mine = self._key
            outcome = self._delivery.deliver([self._outbox], _DELIVER_SECONDS, lambda k: k == mine)
            self._undelivered = outcome.left > 0

    def _raise(self, silent: timedelta, now: datetime) -> None:
        if self._open:
            return
        shelf = self._outbox.shelves({self._stream}).get(self._key)
        alert = silent_alert(self._stream, silent.total_seconds(), now)
        if self._outbox.raise_(alert, shelf, now):
            log.error("the supervisor has been silent for %d s", silent.total_seconds())
        self._open = self._undelivered = True

    def _resolve(self, now: datetime) -> None:
        if self._open is False:
            return
        shelf = self._outbox.shelves({self._stream}).get(self._key)
        if shelf and shelf.open:
            self._outbox.resolve(self._key, shelf, "the supervisor is back", now)
            log.info("the supervisor is back")
            self._undelivered = True
        self._open = False
