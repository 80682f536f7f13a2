"""Alerts as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingest_platform.model.alert import Transition

DEPLOYMENT_TITLE = "ingest platform"


def title(told: Sequence[Transition]) -> str:
    """One line for all that is told at once; they are of one stream."""
    if len(told) == 1:
        return headline(told[0])
    who = told[0].alert.stream or DEPLOYMENT_TITLE
    over = sum(t.resolves for t in told)
    counts = [f"{len(told) - over} raised"] * (over < len(told)) + [f"{over} resolved"] * bool(over)
    return f"{who}: {', '.join(counts)}"


def headline(told: Transition) -> str:
    """What it is about, in one line."""
    word = "resolved" if told.resolves else str(told.alert.severity)
    return f"[{word}] {told.alert.stream or DEPLOYMENT_TITLE}: {told.alert.what}"


def details(told: Transition) -> Iterator[tuple[str, str]]:
    """The rest, as name and text; the command last, as that is what is copied."""
    alert = told.alert
    yield "since", alert.since
    if told.resolves:
        yield "resolved", f"{told.at}{f': {told.why}' if told.why else ''}"
        return
    yield from ((name, figure(value)) for name, value in alert.numbers.items())
    if alert.cause:
        yield "likely cause", alert.cause
    yield "run", alert.command


def figure(value: str | float) -> str:
    """A number as people write it: grouped, without a tail of digits."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def body(told: Sequence[Transition]) -> str:
    """Plain text: a paragraph for each."""
    blocks = ("\n".join([headline(t), *(f"  {n}: {v}" for n, v in details(t))]) for t in told)
    return "\n\n".join(blocks)


def cut(text: str, length: int) -> str:
    """The text, within what a channel accepts."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
