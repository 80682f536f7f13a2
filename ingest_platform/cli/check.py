"""`ingest-platform check`: what would go wrong, before it does."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import click
from rich.console import Console
from rich.text import Text

from ingest_platform.cli.console import stdout_console
from ingest_platform.cli.specs import alert_settings, find, read_deployment
from ingest_platform.errors import SpecError
from ingest_platform.maintain.preflight.alerts import check_alerts
from ingest_platform.maintain.preflight.findings import Finding, exit_code, of_error
from ingest_platform.maintain.preflight.kinds import Group, Level
from ingest_platform.maintain.preflight.run import Surroundings, here, run_checks
from ingest_platform.spec import StreamSpec
from ingest_platform.steer.resumption import resumption

_MARKS = {Level.OK: ("ok     ", "green"), Level.WARNING: ("warning", "yellow")}
_MARKS[Level.ERROR] = ("error  ", "bold red")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quiet", is_flag=True, help="Leave out what is well.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    default=10.0,
    show_default=True,
    help="Seconds that Kafka has for an answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON object.")
def check(names: tuple[str, ...], quiet: bool, timeout: float, as_json: bool) -> None:
    """Check machine, Kafka, storage, paths, secrets and capacity for the streams.

    Without NAME, all streams of the deployment. Storage is tried with probe objects, which are
    removed again; nothing else is written and nothing is started.

    \b
    Examples:
      ingest-platform check
      ingest-platform check clicks orders --quiet
      ingest-platform check --json | jq '.findings[] | select(.level != "ok")'

    Exit code 0 if there are no errors (warnings do not count), else the highest of: 2 a spec is
    wrong, 3 the environment is, 4 data is lost or would be.
    """  # noqa: D301 - click's mark for a block to keep
    specs, broken = _specs(names)
    findings = [*broken, *run_checks(specs, _world(timeout)), *_alerts()]
    code = exit_code(findings)
    if as_json:
        listed = [f.to_dict() for f in findings if not (quiet and f.level is Level.OK)]
        click.echo(json.dumps({"exit_code": code, "findings": listed}))
    else:
        _show(findings, stdout_console(), quiet=quiet)
    click.get_current_context().exit(code)


def _world(timeout: float) -> Surroundings:
    return here(os.environ, partial(resumption, environ=os.environ), timeout)


def _specs(names: tuple[str, ...]) -> tuple[list[StreamSpec], list[Finding]]:
    """The valid specs, and a finding for each that is not."""
    if names:
        found: list[StreamSpec] = []
        broken: list[SpecError] = []
        for name in names:
            try:
                found.append(find(name, os.environ).spec)
            except SpecError as error:
                broken.append(error)
    else:
        deployment = read_deployment(os.environ)
        found = [item.spec for item in deployment.found]
        broken = [error for _, error in deployment.broken]
    return found, [of_error(Group.SPEC, error, "the stream cannot start") for error in broken]


def _alerts() -> list[Finding]:
    try:
        settings = alert_settings(os.environ)
    except SpecError as error:
        settings = error
    return list(check_alerts(settings, os.environ))


def _show(findings: Sequence[Finding], console: Console, *, quiet: bool) -> None:
    for group in Group:
        mine = [f for f in findings if f.group is group and not (quiet and f.level is Level.OK)]
        if mine:
            console.print(Text(group, "bold"))
        for finding in mine:
            for line in _lines(finding):
                console.print(line, soft_wrap=True)
    counts = Counter(f.level for f in findings)
    console.print(
        f"{counts[Level.ERROR]} errors, {counts[Level.WARNING]} warnings, {counts[Level.OK]} ok"
    )


def _lines(finding: Finding) -> Iterator[Text]:
    mark, style = _MARKS[finding.level]
    stream = f"{finding.stream}: " if finding.stream else ""
    yield Text.assemble("  ", (mark, style), f"  {stream}{finding.what}")
    if finding.why:
        yield Text.assemble("           ", ("why:    ", "dim"), finding.why)
    if finding.remedy:
        yield Text.assemble("           ", ("remedy: ", "green"), finding.remedy)
