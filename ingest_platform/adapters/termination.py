"""A driver's last words: the error it ended with, for whoever launched it.

A driver that fails before it holds the lease may not write the status document, which may be a
healthy rival's; yet its launcher must know whether trying again makes sense. (Kubernetes calls
this a termination message, and has a file for it too.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from ingest_platform.errors import IngestError
from ingest_platform.model.status import ErrorReport

_LONGEST = 800  # characters
VARIABLE = "INGEST_ERROR_FILE"  # set by the launcher


def leave_last_words(error: IngestError, environ: Mapping[str, str], now: datetime) -> None:
    """Write the error to the file that the launcher named; nothing happens without one."""
    file = environ.get(VARIABLE)
    if not file:
        return
    # Kubernetes cuts a termination message at 4,096 bytes.
    short = {"message": error.what[:_LONGEST], "remedy": error.remedy[:_LONGEST]}
    words = replace(ErrorReport.of(error, now), **short)
    with suppress(OSError):  # a full disk may be the very error
        Path(file).write_text(json.dumps(asdict(words)), encoding="utf-8")


def read_last_words(file: Path) -> ErrorReport | None:
    """What the driver left; None when it left nothing that can be read."""
    try:
        return parse_last_words(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def parse_last_words(text: str) -> ErrorReport | None:
    """The error in the text; None when it holds none."""
    try:
        return ErrorReport.from_dict(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        return None
