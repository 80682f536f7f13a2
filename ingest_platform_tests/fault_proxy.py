"""An HTTP proxy for tests that loses, delays and refuses requests on demand.

Put it between a client and an S3 server (or any HTTP/1.1 server) and give the client
`proxy.endpoint`. Everything passes until a fault is set; faults are looked at in the order in
which they were set, and the first one that matches and is not used up applies.

    with FaultProxy(s3.endpoint) as proxy:
        commit = dict(method="PUT", path=r"/_delta_log/\\d{20}\\.json$")

        lost = proxy.drop_response(**commit, nth=3)   # the 3rd lands, its response is lost
        assert lost.wait_for_hits(1, deadline=30)

        stalled = proxy.stall(method="PUT", path=r"/commits/4$")
        assert stalled.wait_for_hits(1, deadline=30)     # it hangs now: kill -9 the client here ...
        stalled.discard()                                # ... and the request never arrives
        stalled.release()                                # or: it arrives now

        busy = proxy.answer(503, path=r".*")             # everything, until
        busy.remove()
        proxy.answer(403, method="GET", times=2)         # the next two

`path` is searched (`re.search`) in the request target, query included: `/bucket/key?x=y`.
Requests are forwarded byte for byte with the client's Host header, so signatures stay valid.
Bodies are held in memory, and `Expect: 100-continue` is answered here.
"""

from __future__ import annotations

import http.client
import re
import socket
import struct
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, Self
from urllib.parse import urlsplit

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect"}
_S3_CODES = {403: "AccessDenied", 404: "NoSuchKey", 500: "InternalError", 503: "SlowDown"}

Action = Literal["drop_response", "stall", "answer"]


@dataclass(eq=False)
class Fault:
    """One fault that was set; tells how often it was hit.

    Attributes:
        action: What happens to a request that it hits.
        method: HTTP method to match; any if None.
        path: Pattern to find in the request target.
        nth: The first matching request to hit, from 1; earlier ones pass.
        times: How many requests to hit; None is without end.
        status: What "answer" answers.
    """

    action: Action
    method: str | None
    path: re.Pattern[str]
    nth: int
    times: int | None
    status: int = 503
    hits: int = 0
    _seen: int = 0
    _removed: bool = False
    _deliver: bool = True
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _released: threading.Event = field(default_factory=threading.Event)

    def take(self, method: str, path: str) -> bool:
        """Whether this request is hit; counts it."""
        with self._changed:
            if self._removed or (self.method and self.method != method):
                return False
            if not self.path.search(path):
                return False
            self._seen += 1
            if self._seen < self.nth or (self.times is not None and self.hits >= self.times):
                return False
            self.hits += 1
            self._changed.notify_all()
            return True

    def wait_for_hits(self, count: int, *, deadline: float) -> bool:
        """Wait until `count` requests were hit; False after `deadline` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.hits >= count, deadline)

    def release(self) -> None:
        """Forward the stalled requests now, and let later ones pass."""
        self._end(deliver=True)

    def discard(self) -> None:
        """Drop the stalled requests: they never arrive. Later ones pass."""
        self._end(deliver=False)

    def remove(self) -> None:
        """End the fault; stalled requests are forwarded."""
        self.release()

    def _end(self, *, deliver: bool) -> None:
        with self._changed:
            self._removed = True
            self._deliver = deliver
        self._released.set()

    def wait_for_release(self) -> bool:
        """Block a stalled request; afterwards, whether to forward it."""
        self._released.wait()
        return self._deliver


class FaultProxy:
    """A proxy on a free port of the loopback interface, in threads of this process."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._faults: list[Fault] = []
        self.requests: deque[tuple[str, str, int | str]] = deque(maxlen=10_000)
        """Method, target, and status or fault of each request, oldest first."""
        self.answered_as: dict[int, int] = {}
        """Statuses of the server that clients get another one for, with an empty body."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def endpoint(self) -> str:
        """URL to give to the client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def drop_response(
        self, *, method: str | None = None, path: str, nth: int = 1, times: int | None = 1
    ) -> Fault:
        """Forward the request, then reset the client's connection instead of answering."""
        return self._set(Fault("drop_response", method, re.compile(path), nth, times))

    def stall(
        self, *, method: str | None = None, path: str, nth: int = 1, times: int | None = None
    ) -> Fault:
        """Hold the request back, not forwarded, until `release` or `discard`."""
        return self._set(Fault("stall", method, re.compile(path), nth, times))

    def answer(
        self,
        status: int,
        *,
        method: str | None = None,
        path: str,
        nth: int = 1,
        times: int | None = None,
    ) -> Fault:
        """Answer with an S3 error of this status; the request is not forwarded."""
        return self._set(Fault("answer", method, re.compile(path), nth, times, status))

    def clear(self) -> None:
        """End all faults; stalled requests are forwarded."""
        for fault in self._faults:
            fault.release()
        self._faults.clear()

    def _set(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def fault_for(self, method: str, path: str) -> Fault | None:
        """The fault that hits this request, if one does."""
        return next((fault for fault in self._faults if fault.take(method, path)), None)

    def connect(self) -> http.client.HTTPConnection:
        """A new connection to the real server."""
        host, port = self._upstream.hostname, self._upstream.port
        assert host is not None
        return http.client.HTTPConnection(host, port, timeout=120)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self._faults:
            fault.discard()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    proxy: FaultProxy

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up or are killed are the daily business of this proxy."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.upstream = self.server.proxy.connect()
        # Without it a response in two writes waits 40 ms for the client's delayed ACK.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handle_expect_100(self) -> bool:
        proceed = super().handle_expect_100()
        self.wfile.flush()  # else the client waits its 3 s before it sends the body anyway
        return proceed

    def finish(self) -> None:
        self.upstream.close()
        super().finish()

    def handle_request(self) -> None:
        body = self._read_body()
        proxy = self.server.proxy
        fault = proxy.fault_for(self.command, self.path)
        proceed = fault is None or fault.action != "stall" or fault.wait_for_release()
        if fault is not None and fault.action == "answer":
            self._note(fault.status)
            self._answer_error(fault.status)
        elif not proceed:
            self._note("discarded")
            self._reset()
        else:
            status, headers, content = self._forward(body)
            if fault is not None and fault.action == "drop_response":
                self._note(f"dropped {status}")
                self._reset()
            else:
                self._note(status)
                instead = proxy.answered_as.get(status)
                if instead is None:
                    self._respond(status, headers, content)
                else:
                    self._respond(instead, [], b"")

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_request  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silence: `FaultProxy.requests` keeps the record."""

    def _note(self, outcome: int | str) -> None:
        self.server.proxy.requests.append((self.command, self.path, outcome))

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        try:
            return self._exchange(body)
        except (http.client.BadStatusLine, ConnectionError):
            # The server closed a connection that was idle; it has not seen this request.
            self.upstream.close()
            return self._exchange(body)

    def _exchange(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        self.upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _HOP_BY_HOP | {"content-length"}:
                self.upstream.putheader(name, value)
        if body or self.command in ("PUT", "POST"):
            self.upstream.putheader("Content-Length", str(len(body)))
        self.upstream.endheaders(body or None)
        response = self.upstream.getresponse()
        return response.status, response.getheaders(), response.read()

    def _respond(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        kept = [(k, v) for k, v in headers if k.lower() not in _HOP_BY_HOP]
        for name, value in kept:
            if self.command == "HEAD" or name.lower() != "content-length":
                self.send_header(name, value)
        if self.command != "HEAD" and status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _answer_error(self, status: int) -> None:
        code = _S3_CODES.get(status, "InternalError")
        content = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
        if self.command == "HEAD":
            content = b""
        self._respond(status, [("Content-Type", "application/xml")], content)

    def _reset(self) -> None:
        # Linger 0 makes close() send RST: the client sees a reset, not a tidy end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()
