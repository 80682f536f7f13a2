"""Where commands print for people."""

from __future__ import annotations

import os

from rich.console import Console

_PIPED_WIDTH = 200


def stdout_console() -> Console:
    """Standard output; wide when it is no terminal, so that `| grep` sees whole lines."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPED_WIDTH
    return console
