"""One handler for every error: a message for people, and the exit code of the error's class."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ingest_platform.cli.lazy import LazyGroup
from ingest_platform.errors import IngestError

UNEXPECTED = 1
INTERRUPTED = 130


class ErrorHandlingGroup(LazyGroup):
    """Turns what a command raises into a message on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; `--debug` adds the trace to any error."""
        try:
            return super().invoke(ctx)
        except IngestError as error:
            show_error(error, debug=wants_debug(ctx))
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise  # click's own way of ending, and `| head`
        except Exception as error:  # noqa: BLE001 - the last handler: nobody is above it
            show_unexpected(error, debug=wants_debug(ctx))
            ctx.exit(UNEXPECTED)


def wants_debug(ctx: click.Context) -> bool:
    """Whether `--debug` was given to the program."""
    return bool(ctx.find_root().params.get("debug"))


def show_error(error: IngestError, *, debug: bool) -> None:
    """Print what was found, where, and how to mend it."""
    text = Text.assemble(("error: ", "bold red"), error.what)
    if error.where:
        text.append_text(Text.assemble("\n  ", ("where:  ", "dim"), error.where))
    text.append_text(Text.assemble("\n  ", ("remedy: ", "green"), error.remedy))
    _print(text, debug=debug)


def show_unexpected(error: Exception, *, debug: bool) -> None:
    """Print one line: a trace would bury it, and helps only those who can read the code."""
    lines = str(error).strip().splitlines()
    hint = "" if debug else "; --debug shows the trace"
    what = f"{type(error).__name__}: {lines[0] if lines else 'no message'}{hint}"
    _print(Text.assemble(("unexpected error: ", "bold red"), what), debug=debug)


def _print(text: Text, *, debug: bool) -> None:
    if debug:
        traceback.print_exc(file=sys.stderr)
    # Soft wrap keeps paths and commands whole, so that they can be copied.
    Console(stderr=True, highlight=False, soft_wrap=True).print(text)
