"""An S3 server that takes next to nothing from the client it serves: reads only, nobody is asked.

A store that is far away costs the client's machine nothing. The embedded server does: it walks the
whole folder for each page of a listing, so the 100 pages of 100,000 names would be all that is
measured. Here names are listed once, when the server starts.
"""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

import uvicorn

Send = Callable[[Mapping[str, Any]], Awaitable[None]]

_PAGE: Final = 1_000
_START_SECONDS: Final = 30.0
_RANGE: Final = re.compile(rb"bytes=(\d+)-(\d+)")


@dataclass(frozen=True)
class Answer:
    """Status, body and headers of a response."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


class LightS3:
    """Serves the files below `folder` as the objects of one bucket, while the block runs."""

    def __init__(self, folder: Path, bucket: str) -> None:
        self._folder, self._bucket = folder, bucket
        self._sizes = {
            str(file.relative_to(folder)): file.stat().st_size
            for file in folder.rglob("*")
            if file.is_file()
        }
        self._names = sorted(self._sizes)
        config = uvicorn.Config(
            self._serve, port=0, interface="asgi3", log_level="warning", lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """AWS_* variables for a client."""
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_REGION": "us-east-1",
        }

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if time.monotonic() > deadline:
                raise TimeoutError("the S3 server did not start")
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    async def _serve(self, scope: Mapping[str, Any], _receive: object, send: Send) -> None:
        answer = self._answer(scope)
        length = (b"content-length", str(len(answer.body)).encode())
        headers = [length, *answer.headers]
        start = {"type": "http.response.start", "status": answer.status, "headers": headers}
        await send(start)
        body = b"" if scope["method"] == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body})

    def _answer(self, scope: Mapping[str, Any]) -> Answer:
        bucket, _, key = unquote(scope["path"]).lstrip("/").partition("/")
        if scope["method"] not in {"GET", "HEAD"} or bucket != self._bucket:
            return Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        if not key:
            return self._page(parse_qs(scope["query_string"].decode()))
        if key not in self._sizes:
            return Answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        return _object((self._folder / key).read_bytes(), dict(scope["headers"]).get(b"range"))

    def _page(self, asked: Mapping[str, list[str]]) -> Answer:
        """ListObjectsV2 of one prefix; folders below it are listed through."""
        prefix = asked.get("prefix", [""])[0]
        after = asked.get("continuation-token", asked.get("start-after", [prefix]))[0]
        begin = bisect_right(self._names, max(after, prefix))
        names = self._names[begin : begin + _PAGE]
        mine = [name for name in names if name.startswith(prefix)]
        more = len(mine) == _PAGE and begin + _PAGE < len(self._names)
        token = f"<NextContinuationToken>{escape(mine[-1])}</NextContinuationToken>" if more else ""
        time = datetime(2026, 1, 1, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        items = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{time}</LastModified>"
            f'<ETag>"x"</ETag><Size>{self._sizes[name]}</Size></Contents>'
            for name in mine
        )
        truncated = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        body = f"<ListBucketResult>{truncated}{token}{items}</ListBucketResult>"
        return Answer(200, body.encode(), ((b"content-type", b"application/xml"),))


def _object(data: bytes, wanted: bytes | None) -> Answer:
    headers = ((b"etag", b'"x"'), (b"last-modified", b"Thu, 01 Jan 2026 00:00:00 GMT"))
    match = _RANGE.fullmatch(wanted or b"")
    if not match:
        return Answer(200, data, headers)
    first, last = int(match[1]), min(int(match[2]), len(data) - 1)
    if first > last:
        return Answer(416)
    range_ = f"bytes {first}-{last}/{len(data)}".encode()
    return Answer(206, data[first : last + 1], (*headers, (b"content-range", range_)))
