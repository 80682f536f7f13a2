"""`/healthz` and `/metrics` over HTTP: prometheus-client's application on the standard server."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from ingest_platform.spec.monitoring import MonitoringSpec

log = logging.getLogger(__name__)

Health = Callable[[], tuple[bool, dict[str, Any]]]


class HealthServer:
    """Serves until closed. A port that is taken is tried again at each `ensure`.

    Args:
        spec: Where.
        registry: For `/metrics`.
        health: For `/healthz`: whether all is well, and what to say.
    """

    def __init__(self, spec: MonitoringSpec, registry: CollectorRegistry, health: Health) -> None:
        self._spec, self._health = spec, health
        self._metrics = make_wsgi_app(registry)
        self._server: WSGIServer | None = None
        self._told = False

    def ensure(self) -> str | None:
        """Listen, unless that is switched off or done already.

        Returns:
            The address, `http://host:port`; None while there is none. The port may still be the
            predecessor's, which ends within seconds: nothing that a stream should fail for.
        """
        if self._server is None and self._spec.port != 0:
            try:
                self._server = self._listen()
            except OSError as error:
                if not self._told:
                    where = f"{self._spec.address}:{self._spec.port}"
                    log.warning("health cannot be served at %s yet: %s", where, error.strerror)
                self._told = True
        return self._url()

    def close(self) -> None:
        """Stop serving."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _listen(self) -> WSGIServer:
        port = self._spec.port if isinstance(self._spec.port, int) else 0
        server = _Server((self._spec.address, port), _Quiet)
        server.set_app(self._answer)
        threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
        return server

    def _url(self) -> str | None:
        if self._server is None:
            return None
        host = self._spec.address
        return f"http://{f'[{host}]' if ':' in host else host}:{self._server.server_port}"

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return self._metrics(environ, start_response)
        if path not in {"/healthz", "/"}:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"there are /healthz and /metrics\n"]
        healthy, document = self._health()
        status = "200 OK" if healthy else "503 Service Unavailable"
        start_response(status, [("Content-Type", "application/json")])
        return [json.dumps(document).encode() + b"\n"]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # The standard one looks up the host's name, which may wait for a name server.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


class _Quiet(WSGIRequestHandler):
    timeout = 5  # seconds; whoever connects and says nothing holds a thread for no longer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: scrapes every few seconds would drown the driver's log."""
