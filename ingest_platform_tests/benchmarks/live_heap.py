"""Bytes that a JVM's live objects take: a full collection, then what the heap holds.

Only this tells a leak from garbage that was not collected yet. It speaks HotSpot's attach protocol
as `jcmd` does, since a JRE has no `jcmd`: `sun.tools.attach.VirtualMachineImpl` of the JDK.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path

_WAIT_SECONDS = 10.0
_TIMEOUT_SECONDS = 60.0

# Parallel, serial and G1 heaps, in the lines of `GC.heap_info`.
_GENERATION = re.compile(
    r"^\s*(?:PSYoungGen|ParOldGen|def new generation|tenured generation|garbage-first heap)\s"
    r".*?used (\d+)K",
    re.MULTILINE,
)

_HISTOGRAM_ROW = re.compile(r"\s*\d+:\s+\d+\s+(\d+)\s+(\S+)")


def live_heap(pid: int) -> int:
    """Collect fully and return the bytes in use; the JVM stops for a few hundred milliseconds.

    Raises:
        OSError: The JVM is gone or does not let itself be attached to.
        ValueError: It uses a collector that is not known here.
    """
    _command(pid, "GC.run")
    info = _command(pid, "GC.heap_info")
    used = [int(kilobytes) for kilobytes in _GENERATION.findall(info)]
    if not used:
        raise ValueError(f"no heap that is known in: {info.splitlines()[:3]}")
    return sum(used) * 1024


def class_histogram(pid: int) -> dict[str, int]:
    """Bytes of live objects by class, after a full collection.

    Raises:
        OSError: As `live_heap`.
    """
    rows = _command(pid, "GC.class_histogram").splitlines()
    found = (_HISTOGRAM_ROW.match(row) for row in rows)
    return {match[2]: int(match[1]) for match in found if match}


def _command(pid: int, command: str) -> str:
    address = Path(f"/tmp/.java_pid{pid}")
    if not address.exists():
        _open_door(pid, address)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(_TIMEOUT_SECONDS)
        s.connect(str(address))
        # Version, operation and always three arguments, each ended by a zero byte.
        s.sendall(f"1\0jcmd\0{command}\0\0\0".encode())
        answer = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    status, _, text = answer.partition("\n")
    if status != "0":
        raise OSError(f"process {pid} refused {command}: {text.strip()}")
    return text


def _open_door(pid: int, address: Path) -> None:
    """Ask the JVM to listen: a file that it looks for, then the signal that makes it look."""
    request = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
    request.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + _WAIT_SECONDS
        while not address.exists():
            if time.monotonic() > deadline:
                raise OSError(f"process {pid} does not let itself be attached to")
            time.sleep(0.05)
    finally:
        request.unlink(missing_ok=True)
