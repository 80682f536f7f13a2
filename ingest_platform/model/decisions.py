"""What the supervisor may decide. Every decision carries the reason that the UI shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Start:
    """Launch a driver; `generation` is the lease generation that it will take at least.

    `attempt` counts launches in a row whose driver did not last, this one included. `cause` is the
    kind of error that ended the driver before, `died` or `stopped`; empty for the first driver.
    """

    reason: str
    generation: int
    attempt: int = 1
    cause: str = ""
    alert: bool = False  # as in `Wait`


@dataclass(frozen=True)
class Drain:
    """Ask the driver to finish its batch and exit; a successor follows if `then_start`.

    `overlap`: it goes on until its successor is ready. Not for one that serves nobody any more.
    """

    reason: str
    then_start: bool
    overlap: bool = True


@dataclass(frozen=True)
class Stop:
    """End the driver's process now; it is hung or must not go on."""

    reason: str


@dataclass(frozen=True)
class Wait:
    """Do nothing this time; `until` says when the answer may change, where that is known.

    `alert`: a person should know, though it may heal by itself.
    """

    reason: str
    until: datetime | None = None
    alert: bool = False


@dataclass(frozen=True)
class GiveUp:
    """Do nothing until a person has acted on `remedy`."""

    reason: str
    remedy: str


Decision = Start | Drain | Stop | Wait | GiveUp
