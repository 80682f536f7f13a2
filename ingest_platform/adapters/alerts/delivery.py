"""From the outbox to the channels: in order, grouped by stream, within a bounded time.

Each channel has a thread of its own, so a slow one delays no other. The threads are daemons and the
wait for them ends in time: what a channel has not taken by then stays claimed, and is tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from ingest_platform.adapters.alerts.channel import DeliveryFailed
from ingest_platform.adapters.alerts.channels import sender, wants
from ingest_platform.adapters.alerts.outbox import Attempt, Outbox, Shelf
from ingest_platform.errors import IngestError
from ingest_platform.model.alert import Transition
from ingest_platform.spec.alerts import AlertsSpec, ChannelSpec, channel_name

log = logging.getLogger(__name__)

_SHORTEST = (
    1.0  # seconds that an attempt needs at least; with less left, it waits for the next time
)


@dataclass(frozen=True)
class Due:
    """One transition that a channel is to be told now."""

    outbox: Outbox
    told: Transition
    attempt: int

    @property
    def key(self) -> str:
        """The alert's."""
        return self.told.alert.key


@dataclass
class Outcome:
    """What was delivered; `left` counts what is still to be told, by channel."""

    sent: list[tuple[str, str]] = field(default_factory=list)  # channel, id
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0


@dataclass(frozen=True)
class Delivery:
    """Tells channels what they have yet to be told.

    Attributes:
        spec: Channels, and the time that each may take.
        environ: Where their secrets are.
        clock: The present time, aware.
    """

    spec: AlertsSpec
    environ: Mapping[str, str]
    clock: Callable[[], datetime]

    def deliver(
        self,
        outboxes: Sequence[Outbox],
        seconds: float,
        only: Callable[[str], bool] = lambda _: True,
    ) -> Outcome:
        """Tell what is due, then tidy up.

        Args:
            outboxes: Where to look.
            seconds: When this returns at the latest, but for the outbox's own storage.
            only: Which keys.

        Raises:
            IngestError: The outbox cannot be read.
        """
        deadline, outcome = time.monotonic() + seconds, Outcome()
        open_, due = self._pending(outboxes, only)
        threads = [
            threading.Thread(
                target=self._serve,
                args=(channel, due[channel_name(channel)], deadline, outcome),
                name=f"alerts-{channel_name(channel)}",
                daemon=True,
            )
            for channel in self.spec.channels
            if due[channel_name(channel)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        outcome.left = self._tidy(open_, only)
        return outcome

    def _pending(
        self, outboxes: Sequence[Outbox], only: Callable[[str], bool]
    ) -> tuple[list[Outbox], dict[str, list[Due]]]:
        due: dict[str, list[Due]] = {channel_name(c): [] for c in self.spec.channels}
        touched: list[Outbox] = []
        for outbox in outboxes:
            shelves = {key: shelf for key, shelf in outbox.shelves().items() if only(key)}
            told = _unfinished(outbox, shelves)
            if told:
                touched.append(outbox)
            for channel in self.spec.channels:
                for key, transitions in told.items():
                    mine = [t for t in transitions if wants(channel, t.alert)]
                    due[channel_name(channel)] += self._due(
                        outbox, channel_name(channel), key, shelves[key], mine
                    )
        return touched, due

    def _due(
        self, outbox: Outbox, channel: str, key: str, shelf: Shelf, told: Sequence[Transition]
    ) -> list[Due]:
        """All that the channel lacks, if the first of it is due: order counts.

        A resolution that overtook its alert would leave a PagerDuty incident open for ever.
        """
        lacking = set(shelf.undelivered(channel))
        rest = [t for t in told if t.number in lacking]
        for transition in rest[:1]:
            tried = shelf.tries.get((transition.number, channel), 0)
            last = outbox.attempt(key, transition.number, channel, tried)
            if last and not last.due(tried, self.clock()):
                return []
        return [Due(outbox, t, shelf.tries.get((t.number, channel), 0) + 1) for t in rest]

    def _serve(
        self, channel: ChannelSpec, due: Sequence[Due], deadline: float, outcome: Outcome
    ) -> None:
        """One channel's thread: one message for each stream."""
        by_stream = sorted(due, key=lambda d: (d.told.alert.stream, d.told.at, d.told.number))
        try:
            for _, group in groupby(by_stream, key=lambda d: d.told.alert.stream):
                if deadline - time.monotonic() < _SHORTEST:
                    return
                self._send(channel, self._claimed(channel, list(group)), deadline, outcome)
        except IngestError as error:
            # The outbox's storage: what was sent may be sent again, which its id tells.
            outcome.failed[channel_name(channel)] = error.what
            log.warning("alerts to %s: %s", channel_name(channel), error.what)

    def _claimed(self, channel: ChannelSpec, due: Sequence[Due]) -> list[Due]:
        """Those that nobody else is telling; after the first lost claim of a key, none of it."""
        lost, mine = set[str](), list[Due]()
        for one in due:
            now, name = self.clock(), channel_name(channel)
            if one.key not in lost and one.outbox.claim(
                one.key, one.told.number, name, one.attempt, now
            ):
                mine.append(one)
            else:
                lost.add(one.key)
        return mine

    def _send(
        self, channel: ChannelSpec, due: Sequence[Due], deadline: float, outcome: Outcome
    ) -> None:
        if not due:
            return
        name = channel_name(channel)
        timeout = min(self.spec.timeout.total_seconds(), deadline - time.monotonic())
        try:
            sender(channel, self.environ)([one.told for one in due], timeout)
        except (DeliveryFailed, IngestError) as error:
            self._failed(name, due, error, outcome)
            return
        for one in due:
            one.outbox.sent(one.key, one.told.number, name)
            outcome.sent.append((name, one.told.id))

    def _failed(
        self, channel: str, due: Sequence[Due], error: DeliveryFailed | IngestError, out: Outcome
    ) -> None:
        reason = error.what if isinstance(error, IngestError) else str(error)
        out.failed[channel] = reason
        log.warning("alerts to %s are tried again: %s", channel, reason)
        now = self.clock()
        wait = error.wait if isinstance(error, DeliveryFailed) else 0.0
        again = (now + timedelta(seconds=wait)).isoformat() if wait else ""
        for one in due:
            how = Attempt(now.isoformat(timespec="seconds"), reason, again)
            one.outbox.failed(one.key, one.told.number, channel, one.attempt, how)

    def _tidy(self, outboxes: Collection[Outbox], only: Callable[[str], bool]) -> int:
        """Close what all channels have; returns how many messages are left."""
        left = 0
        for outbox in outboxes:
            shelves = {key: shelf for key, shelf in outbox.shelves().items() if only(key)}
            for key, transitions in _unfinished(outbox, shelves).items():
                wanting = [
                    channel_name(c) for c in self.spec.channels if wants(c, transitions[0].alert)
                ]
                outbox.tidy(key, shelves[key], wanting)
                left += sum(len(shelves[key].undelivered(name)) for name in wanting)
        return left


def _unfinished(outbox: Outbox, shelves: Mapping[str, Shelf]) -> dict[str, list[Transition]]:
    """Transitions that some channel may lack, by key, oldest first."""
    found: dict[str, list[Transition]] = {}
    for key, shelf in shelves.items():
        read = (outbox.transition(key, n) for n in shelf.numbers if n not in shelf.done)
        told = [transition for transition in read if transition]
        if told:
            found[key] = told
    return found
