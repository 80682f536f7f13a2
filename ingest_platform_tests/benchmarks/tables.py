"""Figures and targets for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ingest_platform_tests.benchmarks.figures import Figure, Figures
from ingest_platform_tests.benchmarks.targets import Target


def print_outcome(
    console: Console,
    figures: Figures,
    titles: Mapping[str, str],
    targets: Sequence[Target],
    path: Path,
) -> None:
    """How every benchmark ends: its figures, its targets, and where they were written."""
    for table in figure_tables(figures, titles):
        console.print(table)
    console.print(target_table(targets))
    console.print(f"written: {path}, and a plot beside it")


def figure_tables(figures: Figures, titles: Mapping[str, str]) -> Iterator[Table]:
    """One table a part: median (least to most), one column a contender or ratio."""
    for part in dict.fromkeys(figure.part for figure in figures):
        mine = [figure for figure in figures if figure.part == part]
        columns = sorted({f.contender for f in mine}, key=lambda key: ("/" in key, key))
        legend = ", ".join(f"({key}) {titles[key]}" for key in columns if key in titles)
        table = Table(title=f"{part}: {legend}", title_justify="left")
        table.add_column("figure")
        table.add_column("unit")
        for key in columns:
            table.add_column(f"({key})" if key in titles else key, justify="right")
        for name in dict.fromkeys(figure.name for figure in mine):
            cells = {f.contender: f for f in mine if f.name == name}
            unit = next(f.unit for f in mine if f.name == name)
            table.add_row(name, unit, *[_cell(cells.get(key)) for key in columns])
        yield table


def target_table(targets: Sequence[Target]) -> Table:
    """Goals and whether they are met."""
    table = Table(title="targets", title_justify="left")
    for name in ("target", "value", "goal", "met"):
        table.add_column(name, justify="left" if name == "target" else "right")
    for target in targets:
        goal = f"{target.bound} {target.goal:.3g} {target.unit}"
        met = "[green]yes[/]" if target.met else "[red]no[/]"
        table.add_row(target.name, f"{target.value:.3g}", goal, met)
    return table


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    if len(figure.values) == 1:
        return _number(figure.median)
    spread = f"{_number(min(figure.values))} to {_number(max(figure.values))}"
    return f"{_number(figure.median)} ({spread})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
