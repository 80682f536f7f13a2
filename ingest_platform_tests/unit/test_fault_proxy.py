"""The proxy's own contract: a fault test that does not inject its fault proves nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from ingest_platform_tests.fault_proxy import FaultProxy

DEADLINE = 10.0


@pytest.fixture
def received() -> list[str]:
    return []


@pytest.fixture
def upstream(received: list[str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(f"{self.path} {body.decode()} {self.headers['Host']}")
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proxy(upstream: str) -> Iterator[FaultProxy]:
    with FaultProxy(upstream) as p:
        yield p


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.endpoint, trust_env=False, timeout=DEADLINE) as c:
        yield c


def test_passes_with_the_clients_host(
    client: httpx.Client, proxy: FaultProxy, received: list[str]
) -> None:
    """A rewritten Host header would break every S3 signature."""
    assert client.put("/k?x=1", content=b"v").text == "ok"
    assert received == [f"/k?x=1 v {proxy.endpoint.removeprefix('http://')}"]


def test_drops_the_nth_response_after_delivery(
    client: httpx.Client, proxy: FaultProxy, received: list[str]
) -> None:
    fault = proxy.drop_response(method="PUT", path=r"/k$", nth=2)
    assert client.put("/k", content=b"1").status_code == 200
    with pytest.raises(httpx.TransportError):
        client.put("/k", content=b"2")
    assert client.put("/k", content=b"3").status_code == 200
    assert [r.split()[1] for r in received] == ["1", "2", "3"]
    assert fault.hits == 1
    assert [outcome for _, _, outcome in proxy.requests] == [200, "dropped 200", 200]


def test_answers_in_place_of_the_server(
    client: httpx.Client, proxy: FaultProxy, received: list[str]
) -> None:
    proxy.answer(503, path=r"/k$", times=2)
    answers = [client.put("/k", content=b"1") for _ in range(3)]
    assert [a.status_code for a in answers] == [503, 503, 200]
    assert "SlowDown" in answers[0].text
    assert len(received) == 1


@pytest.mark.parametrize("deliver", [True, False])
def test_stalls_until_told(
    client: httpx.Client, proxy: FaultProxy, received: list[str], deliver: bool
) -> None:
    stalled = proxy.stall(path=r"/commits/4$")
    outcomes: list[object] = []

    def put() -> None:
        try:
            outcomes.append(client.put("/commits/4", content=b"1").status_code)
        except httpx.TransportError:
            outcomes.append("reset")

    thread = threading.Thread(target=put)
    thread.start()
    assert stalled.wait_for_hits(1, deadline=DEADLINE)
    assert received == []
    if deliver:
        stalled.release()
    else:
        stalled.discard()
    thread.join(DEADLINE)
    assert outcomes == [200 if deliver else "reset"]
    assert len(received) == int(deliver)
    assert client.put("/commits/4", content=b"2").status_code == 200


def test_a_removed_fault_is_over(client: httpx.Client, proxy: FaultProxy) -> None:
    fault = proxy.answer(403, path=r".")
    assert client.put("/k", content=b"1").status_code == 403
    fault.remove()
    assert client.put("/k", content=b"1").status_code == 200
