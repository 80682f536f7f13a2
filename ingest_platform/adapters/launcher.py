"""What every launcher of drivers can do, wherever the drivers run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ingest_platform.model.status import ErrorReport, RunsAt


@dataclass(frozen=True)
class Launch:
    """One driver to start.

    Attributes:
        spec_path: The `defs.yaml`; `name` chooses among several streams in it.
        name: The stream.
        log_dir: Folder of this stream's logs.
        env: The driver's whole environment. Holds secrets: kept out of `repr`.
        follows: Generation whose successor it is: it gets ready, and waits until that has ended.
    """

    spec_path: Path
    name: str
    log_dir: Path
    env: Mapping[str, str] = field(repr=False)
    follows: int | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The driver's arguments after the spec's path."""
        waits = () if self.follows is None else ("--standby-after", str(self.follows))
        return ("--name", self.name, *waits)


class Launcher(Protocol):
    """Starts and ends drivers that outlive the process that started them."""

    def launch(self, launch: Launch) -> RunsAt:
        """Start a driver and return at once; whether it becomes healthy, its status will say.

        Raises:
            ServiceStartError: The process could not even be created.
        """
        ...

    def alive(self, runs_at: RunsAt) -> bool | None:
        """Whether that very driver still exists; None when it cannot be known from here."""
        ...

    def drain(self, runs_at: RunsAt) -> bool:
        """Ask the driver to finish its batch and exit; False when it is not there."""
        ...

    def kill(self, runs_at: RunsAt) -> bool:
        """End the driver and what it left behind, now; False when nothing was there."""
        ...

    def dump_threads(self, runs_at: RunsAt) -> bool:
        """Ask the driver's JVM to write its threads into the log; False when there is none."""
        ...

    def last_words(self, runs_at: RunsAt) -> ErrorReport | None:
        """The error that the driver ended with; None when it left none, or goes on."""
        ...

    def log_tail(self, runs_at: RunsAt, lines: int = 40) -> str:
        """The end of the driver's log; empty when it cannot be read from here."""
        ...
