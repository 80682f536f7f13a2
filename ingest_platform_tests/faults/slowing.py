"""A user's transform that lets a driver drift: each batch waits longer than the one before."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

SECONDS_FILE: Final = "TEST_SECONDS_FILE"  # names a file that says how long each batch waits
STEADY_BATCHES: Final = 45
_MORE_SECONDS: Final = 0.2

_batches = itertools.count()


def slower_with_each_batch(rows: DataFrame) -> DataFrame:
    """As a leak does it: fast at first, and fast again in a new process."""
    drifted = max(0, next(_batches) - STEADY_BATCHES) * _MORE_SECONDS
    told = Path(os.environ[SECONDS_FILE])
    time.sleep(float(told.read_text()) if told.exists() else drifted)
    return rows
