"""The journal of repairs, beside the stream's status: a repair that was cut off goes on from here.

Each document is made once, by a conditional create, and never changed: of two processes that repair
one stream, one makes it and the other finds it.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, cast

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.errors import RepairUnderWayError
from ingest_platform.model.repair import RepairPlan, Step

_PLAN, _ABANDONED = "0-plan", "9-abandoned"


class RepairJournal:
    """Repairs of stream `name`, at `streams/<name>/repair/<number>/<step>.json`."""

    def __init__(self, objects: ObjectStore, name: str) -> None:
        self._objects = objects
        self._folder = f"streams/{name}/repair"
        self._number = re.compile(rf"{re.escape(self._folder)}/(\d{{6}})/.+")

    @property
    def path(self) -> str:
        """Where it is, for people."""
        return f"{self._objects.root}/{self._folder}"

    def numbers(self) -> list[int]:
        """All repairs, oldest first."""
        matches = (self._number.fullmatch(key) for key in self._objects.list(self._folder))
        return sorted({int(match[1]) for match in matches if match})

    def open_repair(self) -> RepairPlan | None:
        """The repair that was begun and has not come to its end."""
        for number in reversed(self.numbers()):
            plan = self.plan(number)
            if plan is not None:
                ended = self._get(number, Step.VERIFIED) or self._get(number, _ABANDONED)
                return None if ended else plan
        return None

    def plan(self, number: int) -> RepairPlan | None:
        """The plan that a person agreed to, as last settled."""
        raw = self._get(number, Step.SETTLED) or self._get(number, _PLAN)
        return RepairPlan.from_json(raw) if raw else None

    def begin(self, plan: RepairPlan) -> None:
        """Open a repair.

        Raises:
            RepairUnderWayError: Another process has just opened one.
        """
        if not self._create(plan.record.repair, _PLAN, plan.to_json()):
            raise RepairUnderWayError(
                f"repair {plan.record.repair} has just been begun by someone else",
                where=self.path,
                remedy="look at it with: ingest-platform repair plan; apply goes on with it",
            )

    def settle(self, plan: RepairPlan) -> None:
        """Keep the plan that is carried out; it does not change any more."""
        self._create(plan.record.repair, Step.SETTLED, plan.to_json())

    def done(self, number: int, step: Step, now: datetime, **details: Any) -> None:
        """Record that a step is over."""
        body = {"at": now.isoformat(timespec="seconds"), **details}
        self._create(number, step, json.dumps(body))

    def has(self, number: int, step: Step) -> bool:
        """Whether a step is over."""
        return self._get(number, step) is not None

    def details(self, number: int, step: Step) -> dict[str, Any] | None:
        """What was recorded with a step; None if it is not over."""
        raw = self._get(number, step)
        return cast("dict[str, Any]", json.loads(raw)) if raw else None

    def abandon(self, number: int, now: datetime, reason: str) -> None:
        """Close a repair that will not be carried out."""
        body = {"at": now.isoformat(timespec="seconds"), "reason": reason}
        self._create(number, _ABANDONED, json.dumps(body))

    def backup(self, number: int) -> str:
        """Key of the folder that a retired checkpoint is kept in."""
        return f"{self._folder}/{number:06d}/checkpoint"

    def _get(self, number: int, document: str) -> bytes | None:
        return self._objects.get(self._key(number, document))

    def _create(self, number: int, document: str, text: str) -> bool:
        return self._objects.create(self._key(number, document), text.encode())

    def _key(self, number: int, document: str) -> str:
        return f"{self._folder}/{number:06d}/{document}.json"
