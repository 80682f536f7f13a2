"""A service's data folder, used by one process at a time."""

from __future__ import annotations

import fcntl
from contextlib import suppress
from pathlib import Path
from typing import IO

from ingest_platform.errors import ServiceStartError


def claim(folder: Path, *, service: str, owner_pid: int) -> IO[str]:
    """Take a data folder until the returned file is closed or this process ends.

    Two brokers or S3 servers on the same data would damage it.

    Raises:
        ServiceStartError: Another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = (folder / "in-use").open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
        handle.seek(0)
        owner = handle.read().strip() or "unknown"
        handle.close()
        raise ServiceStartError(
            f"the data of the {service} is in use by process {owner}",
            where=str(folder),
            remedy=f"use what runs already, or end process {owner}, or choose another folder",
        ) from e
    with suppress(OSError):
        handle.truncate(0)
        handle.write(str(owner_pid))
        handle.flush()
    return handle
