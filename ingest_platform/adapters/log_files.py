"""A driver's log file: one per launch, bounded, the earlier ones kept beside it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

NAME = "driver.log"
ERROR = "error.json"
KEPT = 9
MAX_BYTES = 20_000_000
_TAIL_BYTES = 65_536


def begin(folder: Path) -> Path:
    """Make room for a new launch: `driver.log` becomes `driver.log.1`, and so on.

    A driver that is still draining goes on writing into its renamed file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ERROR).unlink(missing_ok=True)
    log = folder / NAME
    if log.exists() and log.stat().st_size:
        _shift(log)
        with suppress(FileNotFoundError):
            log.replace(_numbered(log, 1))
    return log


def bound(folder: Path, max_bytes: int = MAX_BYTES) -> bool:
    """Rotate `driver.log` by copy and truncation if it is too large; True if it was.

    The driver and its JVM hold the file open for appending, so it cannot be renamed under them;
    lines written between copy and truncation are lost.
    """
    log = folder / NAME
    try:
        if log.stat().st_size <= max_bytes:
            return False
    except FileNotFoundError:
        return False
    _shift(log)
    shutil.copyfile(log, _numbered(log, 1))
    os.truncate(log, 0)
    return True


def tail(log: Path, lines: int = 40) -> str:
    """The last lines, from the last 64 kB; empty when there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _shift(log: Path) -> None:
    for number in range(KEPT, 0, -1):
        with suppress(FileNotFoundError):
            if number == KEPT:
                _numbered(log, number).unlink()
            else:
                _numbered(log, number).replace(_numbered(log, number + 1))


def _numbered(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")
