"""Ports of embedded services: free ones, the same again after a restart where possible."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Mapping
from pathlib import Path

from ingest_platform.errors import PortTakenError

LOOPBACK = "127.0.0.1"

# Below the range from which the kernel takes ports for outgoing connections (from 32768): a port
# that is kept for the next start is not lost to some client in between.
_RANGE = range(20000, 32000)
_TRIES = 200


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback interface now."""
    with socket.socket() as s:
        # As servers do: without it, connections that linger from the last run count as taken.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether something accepts connections on this port of the loopback interface."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def choose_ports(
    remembered: Path, wanted: Mapping[str, int | None], *, rng: random.Random
) -> dict[str, int]:
    """A port for each name: the given one, else the one of the last time, else a free one.

    Args:
        remembered: JSON file that keeps the choice; written here.
        wanted: Port by name; None leaves the choice to us.
        rng: Picks candidates.

    Raises:
        PortTakenError: A given port is in use.
    """
    last = _read(remembered)
    chosen: dict[str, int] = {}
    for name, port in wanted.items():
        taken = set(chosen.values())
        if port is None:
            chosen[name] = _kept_or_free(last.get(name), taken, rng)
        elif is_free(port) and port not in taken:
            chosen[name] = port
        else:
            raise PortTakenError(
                f"port {port} for {name} is in use",
                where=f"{LOOPBACK}:{port}",
                remedy=f"stop what listens there (`ss -ltnp 'sport = :{port}'` names it), or give "
                "another port, or none to have a free one chosen",
            )
    remembered.parent.mkdir(parents=True, exist_ok=True)
    remembered.write_text(json.dumps(chosen) + "\n", encoding="utf-8")
    return chosen


def _kept_or_free(kept: int | None, taken: set[int], rng: random.Random) -> int:
    if kept is not None and kept not in taken and is_free(kept):
        return kept
    for _ in range(_TRIES):
        port = rng.choice(_RANGE)
        if port not in taken and is_free(port):
            return port
    raise PortTakenError(
        f"no free port found in {_TRIES} tries between {_RANGE.start} and {_RANGE.stop - 1}",
        where=LOOPBACK,
        remedy="give a port explicitly",
    )


def _read(path: Path) -> dict[str, int]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(raw, dict):
        return {}
    return {name: port for name, port in raw.items() if isinstance(port, int)}
