"""The life of an alert, killed before and after each of its writes: told in order, by one id."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count, groupby

import pytest

from ingest_platform.adapters.alerts.delivery import Delivery
from ingest_platform.adapters.alerts.outbox import Outbox
from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.errors import StorageUnavailableError
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform_tests.factories import NOW, make_alert

SPEC = parse_alerts({"channels": [{"type": "webhook"}]}, {}, where="defs.yaml")
KEY = make_alert().key


class Killed:
    """The store of a process that dies at its operation number `at`; then nothing is done any more.

    `late`: the operation has its effect, and the process dies before it learns of it.
    """

    def __init__(self, objects: LocalObjects, at: int, *, late: bool) -> None:
        self._objects, self._at, self._late = objects, at, late
        self.done = 0
        self.root = objects.root

    def _do(self, method: str, *arguments):
        self.done += 1
        if self.done > self._at or (self.done == self._at and not self._late):
            raise StorageUnavailableError("killed", remedy="none")
        result = getattr(self._objects, method)(*arguments)
        if self.done == self._at:
            raise StorageUnavailableError("killed", remedy="none")
        return result

    def __getattr__(self, method: str):
        return lambda *arguments: self._do(method, *arguments)


def look(objects, receiver, now: datetime, *, trouble: bool) -> None:
    """What sensor and driver do at every look: write what changed, then deliver."""
    outbox = Outbox(objects)
    shelf = outbox.shelves().get(KEY)
    if trouble:
        outbox.raise_(make_alert(), shelf, now)
    elif shelf:
        outbox.resolve(KEY, shelf, "well", now)
    Delivery(SPEC, {"ALERT_WEBHOOK_URL": receiver.url}, lambda: now).deliver([outbox], 10)


def life(objects, receiver, now, *, trouble: bool, at: int, late: bool) -> tuple[int, datetime]:
    """One look by a process that is killed, then looks by others; how much the first one did."""
    dying = Killed(objects, at, late=late)
    with suppress(StorageUnavailableError):
        look(dying, receiver, now, trouble=trouble)
    for _ in range(3):
        now += timedelta(minutes=3)
        look(objects, receiver, now, trouble=trouble)
    return dying.done, now


def objects_left(objects, receiver, now) -> None:
    """The next life of the alert tidies up whatever is left of this one."""
    for trouble in (True, False):
        now += timedelta(hours=1)
        look(objects, receiver, now, trouble=trouble)
    names = objects.list("alerts")
    assert names == [f"alerts/{KEY}/000004.done", f"alerts/{KEY}/000004.json"]


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("raised", [True, False])
def test_killed_at_every_operation(tmp_path, receiver, late, raised):
    """`raised`: while it is raised, or else while it is resolved."""
    for at in count(1):
        objects = LocalObjects(tmp_path / str(at))
        receiver.taken.clear()
        never = 10_000
        did, now = life(objects, receiver, NOW, trouble=True, at=at if raised else never, late=late)
        ended, _ = life(
            objects, receiver, now, trouble=False, at=never if raised else at, late=late
        )
        told = [(a["status"], a["id"]) for got in receiver.taken for a in got.document["alerts"]]
        assert [status for status, _ in groupby(status for status, _ in told)] == [
            "raised",
            "resolved",
        ], f"killed at operation {at}"
        assert len({id_ for _, id_ in told}) == 2, f"killed at operation {at}"
        shelf = Outbox(objects).shelves()[KEY]
        # A kill between `done` and tidying leaves some names, until the alert's next transition.
        assert not shelf.open
        assert set(shelf.numbers) <= shelf.done
        objects_left(objects, receiver, now)
        if (did if raised else ended) < at:
            break  # it lived to the end
    assert at > 8
