"""Real receivers of alerts on loopback: HTTP and SMTP, which can be down, slow or refusing."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword


@dataclass(frozen=True)
class Received:
    """One POST: where, what, and the headers."""

    path: str
    document: dict[str, Any]
    headers: dict[str, str]


@dataclass
class HttpReceiver:
    """Records every POST; `taken` are those that it answered with 2xx.

    `delay` seconds pass before an answer, `status` is its code; both may be changed at any time.
    """

    url: str
    delay: float = 0.0
    status: int = 200
    retry_after: str = ""
    asked: list[Received] = field(default_factory=list)
    taken: list[Received] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)

    def told(self) -> list[tuple[str, str]]:
        """Status and key of each alert that it took from the platform's own webhook, in order."""
        return [(a["status"], a["key"]) for got in self.taken for a in got.document["alerts"]]


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    """A receiver that runs until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            got = Received(self.path, json.loads(data), dict(self.headers))
            receiver.asked.append(got)
            receiver.ending.wait(receiver.delay)
            if self._hung_up():
                return  # the sender did not wait: it was not told that this was taken
            if receiver.status < 300:
                receiver.taken.append(got)
            self.send_response(receiver.status)
            if receiver.retry_after:
                self.send_header("Retry-After", receiver.retry_after)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def _hung_up(self) -> bool:
            try:
                return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
            except BlockingIOError:
                return False

        def log_message(self, *_: Any) -> None:
            """Nothing: a test's output is its own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = HttpReceiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.ending.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mailbox:
    """Mails that arrived, and the logins that were made."""

    host: str
    port: int
    mails: list[Message] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    refuse: str = ""  # e.g. "554 no", the answer to every message

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.refuse:
            return self.refuse
        self.mails.append(message_from_bytes(envelope.content))
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 taken"

    def login(self, server, session, envelope, mechanism, data) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=True)


@contextmanager
def mailbox(**options: Any) -> Iterator[Mailbox]:
    """An SMTP server that runs until the block ends; options as aiosmtpd's `SMTP` has them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        box = Mailbox(*free.getsockname())
    controller = Controller(
        box, hostname=box.host, port=box.port, authenticator=box.login, **options
    )
    controller.start()
    try:
        yield box
    finally:
        controller.stop()
