"""The outbox: what is open, and what each channel has yet to be told, beside the streams' state.

    alerts/<stream>/<kind>/000001.json              raised; created once, never changed
    alerts/<stream>/<kind>/000001/<channel>.0002    a claim: someone makes the second attempt
    alerts/<stream>/<kind>/000001/<channel>.sent    this channel has it
    alerts/<stream>/<kind>/000001.done              every channel has it
    alerts/<stream>/<kind>/000002.json              resolved; and so on, odd and even

Names alone say almost everything, so one listing per look is enough. Sensor and driver may write at
the same time, as may two daemons: an alert is raised by whoever creates the next number, and an
attempt is made by whoever creates its claim. A kill between claim and `sent` costs the wait before
the next attempt; the message may then arrive twice, with the same id, and is never lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.model.alert import Alert, Transition
from ingest_platform.model.times import parse_time

FOLDER = "alerts"
# The first wait is longer than an attempt may take: two attempts never overlap.
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=60), timedelta(minutes=15)

_NAME = re.compile(
    rf"{FOLDER}/(?P<key>[^/]+/[^/]+)/(?P<number>\d{{6}})"
    r"(?:\.(?P<doc>json|done)|/(?P<channel>[^/.]+)\.(?P<mark>sent|\d{4,}))"
)


@dataclass
class Shelf:
    """What the names say of one key.

    Attributes:
        numbers: Transitions that are stored, ascending.
        last: The highest number that was ever seen, also where only marks are left of it.
        done: Those that every channel has.
        sent: Channels that have a transition, by its number.
        tries: Attempts so far, by number and channel.
    """

    numbers: list[int] = field(default_factory=list)
    last: int = 0
    done: set[int] = field(default_factory=set)
    sent: dict[int, set[str]] = field(default_factory=dict)
    tries: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether the alert is raised and not resolved."""
        return bool(self.numbers) and self.numbers[-1] % 2 == 1

    @property
    def history(self) -> list[int]:
        """Transitions before the newest that nobody needs, also those that a kill left in part."""
        known = {*self.numbers, *self.done, *self.sent, *(number for number, _ in self.tries)}
        newest = self.numbers[-1] if self.numbers else 0
        return sorted(n for n in known if n < newest and (n in self.done or n not in self.numbers))

    def undelivered(self, channel: str) -> list[int]:
        """What the channel has yet to be told, in order."""
        return [
            number
            for number in self.numbers
            if number not in self.done and channel not in self.sent.get(number, ())
        ]


@dataclass(frozen=True)
class Attempt:
    """The last attempt to deliver a transition to a channel."""

    at: str
    error: str = ""
    again_at: str = ""

    def due(self, number: int, now: datetime) -> bool:
        """Whether it is time for the one after attempt `number`."""
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(number - 1, 16))
        at, asked = parse_time(self.at), parse_time(self.again_at)
        # A clock set back by more than the wait must not stop deliveries for as long.
        if at is None or now < at - LONGEST_WAIT:
            return True
        return now >= max(at + wait, min(asked, at + LONGEST_WAIT) if asked else at)


class Outbox:
    """The outbox below one root."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    @property
    def root(self) -> str:
        """Where it is, for messages."""
        return self._objects.root

    def shelves(self, streams: Collection[str] | None = None) -> dict[str, Shelf]:
        """What is stored by key, of these streams or of all. One listing."""
        found: dict[str, Shelf] = {}
        for name in self._objects.list(FOLDER):
            match = _NAME.fullmatch(name)
            if match and (streams is None or match["key"].partition("/")[0] in streams):
                _put_on(found.setdefault(match["key"], Shelf()), match)
        return found

    def transition(self, key: str, number: int) -> Transition | None:
        """One stored transition; None if it was tidied away meanwhile."""
        return Transition.from_json(self._objects.get(f"{FOLDER}/{key}/{number:06d}.json"))

    def raise_(self, alert: Alert, shelf: Shelf | None, now: datetime) -> Transition | None:
        """Raise an alert; None if it is open, or someone else just raised it.

        Args:
            alert: What to tell.
            shelf: What `shelves` said of its key.
            now: When.
        """
        if shelf and shelf.open:
            return None
        last = shelf.last if shelf else 0
        return self._add(Transition(alert, last + 1 + last % 2, now.isoformat(timespec="seconds")))

    def resolve(self, key: str, shelf: Shelf, why: str, now: datetime) -> Transition | None:
        """Resolve an open alert; None if it is not open, or someone else just resolved it."""
        raised = self.transition(key, shelf.numbers[-1]) if shelf.open else None
        if raised is None:
            return None
        at = now.isoformat(timespec="seconds")
        return self._add(Transition(raised.alert, raised.number + 1, at, why))

    def attempt(self, key: str, number: int, channel: str, tried: int) -> Attempt | None:
        """The latest attempt, which is number `tried`; None if there was none."""
        data = self._objects.get(_claim(key, number, channel, tried)) if tried else None
        try:
            return Attempt(**json.loads(data)) if data else None
        except (ValueError, TypeError):
            return None  # torn: the next attempt may be made at once

    def claim(self, key: str, number: int, channel: str, attempt: int, now: datetime) -> bool:
        """Whether the attempt is this caller's to make.

        Looks again once the claim is made: a caller whose listing is old could otherwise repeat
        what was delivered, and tidied away, meanwhile.
        """
        name = _claim(key, number, channel, attempt)
        text = json.dumps({"at": now.isoformat(timespec="seconds")})
        if not self._objects.create(name, text.encode()):
            return False
        wanted = self._objects.get(f"{FOLDER}/{key}/{number:06d}.json") is not None
        if wanted and self._objects.get(f"{FOLDER}/{key}/{number:06d}.done") is None:
            return self._objects.get(_sent(key, number, channel)) is None
        self._objects.delete(name)
        return False

    def failed(self, key: str, number: int, channel: str, attempt: int, how: Attempt) -> None:
        """Note why an attempt failed, and drop the one before."""
        self._objects.put(_claim(key, number, channel, attempt), json.dumps(vars(how)).encode())
        if attempt > 1:
            self._objects.delete(_claim(key, number, channel, attempt - 1))

    def sent(self, key: str, number: int, channel: str) -> None:
        """Note that the channel has it."""
        self._objects.put(_sent(key, number, channel), b"")

    def tidy(self, key: str, shelf: Shelf, channels: Collection[str]) -> None:
        """Mark what all of `channels` have as done, and drop what is history.

        `done` is written before the marks that it stands for go, and the newest transition stays,
        so that numbers go on rising.
        """
        for number in shelf.numbers:
            if number not in shelf.done and set(channels) <= shelf.sent.get(number, set()):
                self._objects.put(f"{FOLDER}/{key}/{number:06d}.done", b"")
                shelf.done.add(number)
                self._drop_marks(key, number, shelf)
        for number in shelf.history:
            self._objects.delete(f"{FOLDER}/{key}/{number:06d}.json")
            self._drop_marks(key, number, shelf)
            self._objects.delete(f"{FOLDER}/{key}/{number:06d}.done")

    def _drop_marks(self, key: str, number: int, shelf: Shelf) -> None:
        for channel in shelf.sent.get(number, ()):
            self._objects.delete(_sent(key, number, channel))
        for (tried_number, channel), attempts in shelf.tries.items():
            if tried_number == number:
                for attempt in range(max(1, attempts - 1), attempts + 1):
                    self._objects.delete(_claim(key, number, channel, attempt))

    def _add(self, transition: Transition) -> Transition | None:
        name = f"{FOLDER}/{transition.alert.key}/{transition.number:06d}.json"
        created = self._objects.create(name, transition.to_json().encode())
        return transition if created else None


def _put_on(shelf: Shelf, match: re.Match[str]) -> None:
    number, channel = int(match["number"]), match["channel"]
    shelf.last = max(shelf.last, number)
    if match["doc"] == "json":
        shelf.numbers = sorted({*shelf.numbers, number})
    elif match["doc"] == "done":
        shelf.done.add(number)
    elif match["mark"] == "sent":
        shelf.sent.setdefault(number, set()).add(channel)
    else:
        tried = shelf.tries.get((number, channel), 0)
        shelf.tries[number, channel] = max(tried, int(match["mark"]))


def _claim(key: str, number: int, channel: str, attempt: int) -> str:
    return f"{FOLDER}/{key}/{number:06d}/{channel}.{attempt:04d}"


def _sent(key: str, number: int, channel: str) -> str:
    return f"{FOLDER}/{key}/{number:06d}/{channel}.sent"
