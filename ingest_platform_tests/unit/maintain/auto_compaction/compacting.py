"""A compactor and a watch that do what a test tells them, step by step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ingest_platform.maintain.auto_compaction.outcome import Outcome, Result

DONE = Result(Outcome.COMPLETED, removed=8, added=1)


@dataclass
class ScriptedCompactor:
    """`run` calls the test's function; `looked` and `cancelled` tell what was asked of it."""

    run_with: Callable[[str], Result] = lambda group: DONE
    due: object | None = "all of it"
    looked: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def look(self, table: str) -> object | None:
        self.looked.append(table)
        return self.due

    def run(self, table: str, due: object, group: str) -> Result:
        self.ran.append(table)
        return self.run_with(group)

    def cancel(self, group: str) -> None:
        self.cancelled.append(group)


@dataclass
class ScriptedDml:
    """DML that is in flight from the start, or begins when the test calls `begin`."""

    tables: set[str] = field(default_factory=set)
    _begun: dict[str, Callable[[], None]] = field(default_factory=dict)

    def in_flight(self, table: str) -> bool:
        return table in self.tables

    @contextmanager
    def watching(
        self, table: str, begun: Callable[[], None], gone: threading.Event
    ) -> Iterator[None]:
        self._begun[table] = begun
        yield
        del self._begun[table]

    def begin(self, table: str) -> None:
        self.tables.add(table)
        if table in self._begun:
            self._begun[table]()
