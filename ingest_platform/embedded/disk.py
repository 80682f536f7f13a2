"""Refuse to fill a disk to the last byte: Kafka and Delta would stop in the middle of a write."""

from __future__ import annotations

import shutil
from pathlib import Path

from ingest_platform.errors import DiskFullError

_NEEDED_BYTES = 1 << 30


def check_space(folder: Path) -> None:
    """Look at the file system of a folder, which need not exist yet.

    Raises:
        DiskFullError: Less than 1 GiB is free.
    """
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < _NEEDED_BYTES:
        raise DiskFullError(
            f"{free / 1e9:.2f} GB are free, but {_NEEDED_BYTES / 1e9:.2f} GB are needed to go on",
            where=str(folder),
            remedy="free space there, run `make clean-demo`, or point INGEST_DEMO_DIR at another "
            "disk",
        )
