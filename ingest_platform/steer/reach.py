"""A stream's driver, within reach: its stores, its launcher, and a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ingest_platform.adapters.launcher import Launch, Launcher
from ingest_platform.adapters.stores import Stores


@dataclass(frozen=True)
class Reach:
    """What steering a stream takes.

    Attributes:
        stores: The stream's documents.
        launcher: Where its drivers run.
        launch: The driver to launch.
        say: Takes a sentence of progress.
        now: The time that requests are dated with.
        clock: Monotonic seconds.
        sleep: Waits for so many seconds.
    """

    stores: Stores
    launcher: Launcher
    launch: Launch
    say: Callable[[str], None]
    now: Callable[[], datetime]
    clock: Callable[[], float]
    sleep: Callable[[float], None]

    @property
    def name(self) -> str:
        """The stream."""
        return self.launch.name
