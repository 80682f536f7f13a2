"""A proxy that counts S3 requests, in a process of its own.

delta-rs holds Python's lock while it reads a table's history, so a proxy in a thread of the same
process could not answer it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

from ingest_platform_tests.fault_proxy import FaultProxy

METHODS: Final = ("GET", "HEAD", "LIST", "PUT", "DELETE")


class CountingProxy:
    """Passes requests on to `upstream`; ends with the block."""

    def __init__(self, upstream: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, upstream],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.endpoint = self._answer()

    def counted(self, what: Callable[[], Any]) -> dict[str, int]:
        """Requests by method while `what` runs."""
        self._ask()
        what()
        return json.loads(self._ask())

    def _ask(self) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its standard input is its end


def main() -> None:
    """Serve; answer each line with the requests since the last one."""
    with FaultProxy(sys.argv[1]) as proxy:
        sys.stdout.write(f"{proxy.endpoint}\n")
        sys.stdout.flush()
        for _ in sys.stdin:
            kinds = Counter(_kind(method, path) for method, path, *_ in list(proxy.requests))
            proxy.requests.clear()
            sys.stdout.write(json.dumps({kind: kinds[kind] for kind in METHODS}) + "\n")
            sys.stdout.flush()


def _kind(method: str, path: str) -> str:
    if method == "GET" and "list-type=2" in path:
        return "LIST"
    # A POST completes an upload, or names objects to delete: both are billed as writes.
    return "PUT" if method == "POST" else method


if __name__ == "__main__":
    main()
