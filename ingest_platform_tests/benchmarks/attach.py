"""Ask a running JVM, as `jcmd` does, which a JRE does not have.

HotSpot's attach protocol: `sun.tools.attach.VirtualMachineImpl` of the JDK.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

_WAIT_SECONDS = 10.0
_TIMEOUT_SECONDS = 60.0


def jcmd(pid: int, command: str) -> str:
    """What a JVM of this user answers to a diagnostic command, such as `GC.heap_info`.

    Raises:
        OSError: The JVM is gone, does not let itself be attached to, or refuses the command.
    """
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
