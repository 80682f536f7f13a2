"""The driver's third thread: health over HTTP, and an eye on the supervisor.

Apart from the heartbeat, which must go on beating while a slow alert channel is waited for.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from ingest_platform.adapters.alerts.delivery import Delivery
from ingest_platform.adapters.alerts.outbox import Outbox
from ingest_platform.adapters.contact_store import ContactStore
from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.drivers.health_server import HealthServer
from ingest_platform.drivers.metrics import DriverMetrics
from ingest_platform.drivers.progress import Progress
from ingest_platform.drivers.supervisor_watch import SupervisorWatch
from ingest_platform.errors import IngestError
from ingest_platform.model.status import Status
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StreamSpec
from ingest_platform.spec.alert_files import beside, load_alerts
from ingest_platform.spec.alerts import AlertsSpec
from ingest_platform.supervise.healthz import healthz

log = logging.getLogger(__name__)

_PERIOD_SECONDS = 20.0
_CLOSE_SECONDS = 2.0


def alerts_of(path: Path, environ: Mapping[str, str]) -> AlertsSpec:
    """The alert settings of the deployment; defaults if they are wrong, for a stream must run."""
    try:
        return load_alerts(beside(path), environ)
    except IngestError as error:
        log.warning("this driver cannot alert by itself: %s", error)
        return AlertsSpec.model_validate({})


class Monitor(threading.Thread):
    """Serves what the heartbeat observes, and watches who watches.

    Args:
        spec: The stream.
        objects: The store below the spec's root.
        environ: For the alert channels' secrets.
        alerts: Channels and limits of the deployment.
        progress: Gets the address that is served; gives the first status.
    """

    def __init__(
        self,
        spec: StreamSpec,
        objects: ObjectStore,
        environ: Mapping[str, str],
        alerts: AlertsSpec,
        progress: Progress,
    ) -> None:
        super().__init__(name="monitor", daemon=True)
        self._spec, self._progress = spec, progress
        self._status = replace(progress.base, state=progress.state, reason=progress.reason)
        self._beat_at = time.monotonic()
        self._silent: timedelta | None = None
        self._metrics = DriverMetrics(self._status)
        self._server = HealthServer(spec.monitoring, self._metrics.registry, self.health)
        self._watch = SupervisorWatch(
            spec.name,
            ContactStore(objects, spec.name),
            Outbox(objects),
            Delivery(alerts, environ, utc_now),
            utc_now,
        )
        self._done = threading.Event()

    def start(self) -> None:
        """Serve from now on; the address is in the first status document already."""
        self._serve()
        super().start()

    def observe(self, status: Status) -> None:
        """Take over what the heartbeat just found; called by its thread."""
        self._status, self._beat_at = status, time.monotonic()
        self._metrics.observe(status)

    def run(self) -> None:
        """Look at the supervisor until closed."""
        while not self._done.is_set():
            self._serve()
            try:
                self._silent = self._watch.look()
            except IngestError as error:
                log.warning("the supervisor's contact cannot be read: %s", error.what)
            except Exception:
                # What goes wrong here is no reason to leave the driver without its monitor.
                log.warning("monitor failed", exc_info=True)
            self._metrics.supervised(self._silent)
            self._done.wait(_PERIOD_SECONDS)

    def close(self) -> None:
        """Stop; a delivery under way is not waited for, since its claim will be taken up."""
        self._done.set()
        self._server.close()
        if self.is_alive():
            self.join(timeout=_CLOSE_SECONDS)

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the driver is healthy, and the document of `/healthz`."""
        status, age = self._status, timedelta(seconds=time.monotonic() - self._beat_at)
        judged = healthz(self._spec, status, age)
        return judged.healthy, {
            "healthy": judged.healthy,
            "reason": judged.reason,
            "stream": status.stream,
            "state": str(status.state),
            "generation": status.generation,
            "heartbeat_seconds": round(age.total_seconds(), 1),
            "supervisor_silent_seconds": _seconds(self._silent),
        }

    def _serve(self) -> None:
        url = self._server.ensure()
        with self._progress.lock:
            base = self._progress.base
            if base.runs_at.health != url:
                self._progress.base = replace(base, runs_at=replace(base.runs_at, health=url))


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()
