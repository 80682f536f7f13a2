"""One line that is kept up to date: in place on a terminal, now and then in a log."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console

_LOG_SECONDS = 10.0


class LiveLine:
    """Shows the last text it was given, while entered."""

    def __init__(self, console: Console, every: float = _LOG_SECONDS) -> None:
        """`every` is the time between two lines where the console is no terminal, in seconds."""
        self._console, self._every = console, every
        self._spinner = console.status("...") if console.is_terminal else None
        self._printed = -every

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._spinner is not None:
            self._spinner.update(text)
        elif time.monotonic() - self._printed >= self._every:
            self._printed = time.monotonic()
            self._console.print(text, soft_wrap=True)

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._spinner is not None:
            self._spinner.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line from a terminal."""
        if self._spinner is not None:
            self._spinner.stop()
