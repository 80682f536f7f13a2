"""Journal of repairs, retirement of checkpoints: what a kill leaves, a rerun finishes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.errors import RepairUnderWayError
from ingest_platform.maintain.repair.journal import RepairJournal
from ingest_platform.maintain.repair.retire import retire
from ingest_platform.model.account import RepairRecord
from ingest_platform.model.offsets import Positions
from ingest_platform.model.repair import RepairPlan, Step, Touched, Wishes

NOW = datetime(2026, 11, 1, tzinfo=UTC)
RECORD = RepairRecord("clicks", 1, 5, Positions({"t": {0: 3}}), Positions({"t": {0: 3}}))
PLAN = RepairPlan(RECORD, Wishes(to_version=5), table=Touched(9, 2, 40), session="a")


@pytest.fixture
def journal(tmp_path: Path) -> RepairJournal:
    return RepairJournal(LocalObjects(tmp_path), "clicks")


def test_a_repair_is_open_from_its_plan_to_its_last_step(journal: RepairJournal) -> None:
    assert journal.open_repair() is None
    journal.begin(PLAN)
    assert journal.open_repair() == PLAN
    journal.done(1, Step.STOPPED, NOW)
    assert (journal.has(1, Step.STOPPED), journal.has(1, Step.TABLE)) == (True, False)
    settled = replace(PLAN, undone=3)
    journal.settle(settled)
    assert journal.plan(1) == settled
    journal.done(1, Step.VERIFIED, NOW, clean=True)
    assert journal.open_repair() is None
    assert journal.details(1, Step.VERIFIED) == {"at": "2026-11-01T00:00:00+00:00", "clean": True}
    assert journal.numbers() == [1]


def test_what_is_settled_does_not_change_any_more(journal: RepairJournal) -> None:
    """A second process carries out the same plan, or none."""
    journal.begin(PLAN)
    journal.settle(PLAN)
    journal.settle(replace(PLAN, undone=9))
    assert journal.plan(1) == PLAN


def test_one_of_two_begins(journal: RepairJournal) -> None:
    journal.begin(PLAN)
    with pytest.raises(RepairUnderWayError, match="begun by someone else"):
        journal.begin(PLAN)


def test_an_abandoned_repair_is_over(journal: RepairJournal) -> None:
    journal.begin(PLAN)
    journal.abandon(1, NOW, "given up")
    assert journal.open_repair() is None


class Failing(LocalObjects):
    """Fails at the n-th change, as a process that is killed there."""

    def __init__(self, root: Path, changes: int) -> None:
        super().__init__(root)
        self.left = changes

    def put(self, key: str, data: bytes) -> None:
        self._change()
        super().put(key, data)

    def delete(self, key: str) -> None:
        self._change()
        super().delete(key)

    def _change(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


FILES = {"metadata": b"m", "offsets/0": b"0", "commits/0": b"c", "sources/0/0": b"s"}


@pytest.mark.parametrize("changes", range(11))
def test_a_checkpoint_is_whole_in_one_place_at_least(tmp_path: Path, changes: int) -> None:
    """Cut off after any change: the original or its backup is complete, and a rerun ends it."""
    objects = LocalObjects(tmp_path)
    for name, data in FILES.items():
        objects.put(f"checkpoint/{name}", data)
    with pytest.raises(KeyboardInterrupt) if changes < 9 else nullcontext():
        retire(Failing(tmp_path, changes), "checkpoint", "backup")
    kept = {name: objects.get(f"checkpoint/{name}") for name in FILES}
    copied = {name: objects.get(f"backup/{name}") for name in FILES}
    assert FILES in (kept, copied)
    assert retire(objects, "checkpoint", "backup") == len(FILES)
    assert objects.list("checkpoint") == []
    assert {name: objects.get(f"backup/{name}") for name in FILES} == FILES
