"""The program as a whole: help, start-up, errors and exit codes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from ingest_platform import errors
from ingest_platform.cli import COMMANDS, cli
from ingest_platform.cli.lazy import LazyCommand

HEAVY = ("pyspark", "dagster", "boto3", "deltalake", "pyarrow", "confluent_kafka", "pydantic")


@click.command()
@click.argument("what")
def boom(what: str) -> None:
    """Raise what was asked for."""
    known = {
        "value": ValueError("first line\nsecond line"),
        "silent": RuntimeError(),
        "interrupt": KeyboardInterrupt(),
        "usage": click.UsageError("never like this"),
    }
    raise (
        known[what]
        if what in known
        else getattr(errors, what)(
            "the [bold]finding[/bold]", where="/a/very/" + "long/" * 40 + "path", remedy="do this"
        )
    )


@pytest.fixture
def with_boom(monkeypatch) -> None:
    monkeypatch.setitem(COMMANDS, "boom", LazyCommand(f"{__name__}:boom", "Raise."))


def test_help_imports_nothing_heavy():
    """`--help` must answer at once; Spark, Dagster and the clients take seconds."""
    code = (
        "import sys\n"
        "from ingest_platform.cli import cli\n"
        "cli(['--help'], standalone_mode=False)\n"
        f"heavy = [m for m in {HEAVY} if m in sys.modules]\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


SET_UP = {"demo", "dev", "setup", "jars"}  # of a machine, by hand


def operators_commands(
    command: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Every command that has no sub-commands, but for those that set up a machine."""
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        if below and name not in SET_UP:
            yield from operators_commands(below, (*path, name))


def test_every_command_shows_examples_exit_codes_and_json(run):
    """At night there is time for nothing but `--help`."""
    found = list(operators_commands())
    assert ("repair", "apply") in found
    for path in found:
        shown = run(*path, "--help").stdout
        assert f"ingest-platform {' '.join(path)}" in shown.partition("Example")[2], path
        assert "xit code" in shown, path
        if path != ("stream", "run"):  # whose output is a driver's log
            assert "--json" in shown, path


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("SpecError", 2),
        ("KafkaUnreachableError", 3),
        ("OffsetsLostError", 4),
        ("value", 1),
        ("silent", 1),
        ("interrupt", 130),
        ("usage", 2),
    ],
)
def test_each_kind_of_error_has_its_exit_code(run, with_boom, what, code):
    """Scripts and CI tell a user's mistake from a broken environment by the exit code."""
    assert run("boom", what).exit_code == code


def test_an_error_of_the_tree_is_a_message_without_a_trace(run, with_boom):
    """What, where and how to mend it; whole paths, and no interpretation of brackets."""
    result = run("boom", "SpecError")
    assert result.stdout == ""
    what, where, remedy = result.stderr.splitlines()
    assert what == "error: the [bold]finding[/bold]"
    assert where.strip() == "where:  /a/very/" + "long/" * 40 + "path"
    assert remedy.strip() == "remedy: do this"


def test_a_bug_is_one_line(run, with_boom):
    result = run("boom", "value")
    assert result.stderr.splitlines() == [
        "unexpected error: ValueError: first line; --debug shows the trace"
    ]


@pytest.mark.parametrize("what", ["SpecError", "value"])
def test_debug_shows_the_trace(run, with_boom, what):
    assert "Traceback" in run("--debug", "boom", what).stderr


def test_an_unknown_command_is_a_mistake_of_the_user(run):
    result = run("adit")
    assert result.exit_code == 2
    assert "No such command" in result.stderr


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"stream"}))
def test_commands_help_has_examples(run, name):
    """Operators read `--help`, not the documentation."""
    context = click.Context(cli)
    command = cli.get_command(context, name)
    leaves = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    for leaf in leaves:
        assert "Example" in (leaf.help or ""), leaf.name


def test_the_version_is_told(run):
    assert run("--version").stdout.startswith("ingest-platform 0.")
