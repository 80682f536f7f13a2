"""A line to a server that is far away: a TCP relay that delivers every byte some time later.

In a process of its own, and without a look at what passes, so that it costs little of what is
measured beside it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from typing import Self
from urllib.parse import urlsplit


class SlowLine:
    """Relays to `upstream` (a URL); ends with the block.

    Args:
        upstream: URL of the server.
        round_trip: Seconds that a request and its response take longer.
    """

    def __init__(self, upstream: str, round_trip: float) -> None:
        server = urlsplit(upstream)
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                __name__,
                str(server.hostname),
                str(server.port),
                str(round_trip),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.endpoint = f"http://127.0.0.1:{self._process.stdout.readline().strip()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its standard input is its end


async def _relay(host: str, port: int, delay: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(host, port)
        await asyncio.gather(_late(reader, ours, delay), _late(theirs, writer, delay))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=256)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # connections that are open are nobody's any more


async def _late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Pass bytes on, each `delay` seconds after it came, in order and without holding others up."""
    line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    clock = asyncio.get_running_loop().time
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def deliver() -> None:
        while True:
            due, data = await line.get()
            await asyncio.sleep(due - clock())
            if not data:
                writer.close()
                return
            writer.write(data)

    delivery = asyncio.ensure_future(deliver())
    try:
        while data := await reader.read(1 << 16):
            line.put_nowait((clock() + delay, data))
    except ConnectionError:
        pass  # the other side hung up: so do we
    line.put_nowait((clock() + delay, b""))
    await delivery


if __name__ == "__main__":
    asyncio.run(_relay(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 2))
