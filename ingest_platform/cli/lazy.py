"""A command group that imports a command's module only when that command runs.

`ingest-platform --help` answers at once: Spark, Dagster and boto3 take seconds to import, and no
help text needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True)
class LazyCommand:
    """Where a command is, as `module:attribute`, and the line that the group's help shows."""

    target: str
    summary: str

    def load(self) -> click.Command:
        """Import it."""
        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module), attribute)


class LazyGroup(click.Group):
    """A group over `LazyCommand`s, by name, in the order of the help."""

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the given order."""
        del ctx
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        del ctx
        found = self.lazy.get(cmd_name)
        return found.load() if found else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from their summaries."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in self.lazy.items()])
