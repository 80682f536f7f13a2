"""Ctrl-C, SIGTERM, a closed terminal: the first asks for an orderly end, the second for haste."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While entered, the first signal raises KeyboardInterrupt, and later ones call `haste`.

    Args:
        haste: Must be short and may be called more than once.
    """

    def __init__(self, haste: Callable[[], None]) -> None:
        self._haste = haste
        self._ending = False
        self._before: dict[int, Any] = {}

    def hold(self) -> None:
        """From now on, even a first signal only calls `haste`: an orderly end is under way."""
        self._ending = True

    def __enter__(self) -> Self:
        """Take the signals over."""
        self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._ending:
            self._haste()
        else:
            self._ending = True
            raise KeyboardInterrupt
