"""`ingest-platform stream start|drain|restart|pause|resume`: steer a stream without Dagster.

A supervisor that runs sees what these do and goes on from there: it starts the successor of a
drained driver, and starts nothing while a stream is paused.
"""

from __future__ import annotations

import getpass
import json
import os
import time
from dataclasses import dataclass
from typing import Any

import click

from ingest_platform import errors
from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.launchers import launcher_of
from ingest_platform.adapters.stores import Stores
from ingest_platform.cli.specs import find
from ingest_platform.errors import IngestError, ServiceStartError
from ingest_platform.model.control import Pause
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StorageEnvironment, StreamSpec
from ingest_platform.spec.environment import log_root
from ingest_platform.steer.ending import Ended, StillThere, drain
from ingest_platform.steer.reach import Reach
from ingest_platform.steer.starting import NotStarted, Started, start
from ingest_platform.steer.turnover import Patience, Refused, turnover


@dataclass(frozen=True)
class Outcome:
    """What a command did: a sentence for people, fields for programs."""

    sentence: str
    fields: dict[str, Any]

    def show(self, *, as_json: bool) -> None:
        """Print it."""
        click.echo(json.dumps(self.fields) if as_json else self.sentence)


class Steering:
    """One stream, as the command line reaches it: drivers are processes of this host."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        """Find the stream.

        Args:
            name: A stream's name, or the path of its `defs.yaml`.
            quiet: Print no progress.

        Raises:
            SpecError: There is no such stream, or its spec is not valid.
        """
        found = find(name, os.environ)
        self.spec: StreamSpec = found.spec
        logs = log_root(os.environ) / self.spec.name
        self.reach = Reach(
            stores=Stores.of(self.spec, StorageEnvironment.from_env(os.environ)),
            launcher=launcher_of(self.spec, os.environ),
            launch=Launch(found.path.absolute(), self.spec.name, logs, dict(os.environ)),
            say=(lambda _: None) if quiet else lambda text: click.echo(text, err=True),
            now=utc_now,
            clock=time.monotonic,
            sleep=time.sleep,
        )

    def start(self, seconds: float) -> Outcome:
        """Start, unless it runs.

        Raises:
            StreamPausedError: Someone paused it.
            IngestError: The driver's own error, or that it did not become healthy.
        """
        outcome = start(self.reach, seconds)
        if isinstance(outcome, NotStarted):
            raise driver_error(outcome)
        return self._runs(outcome)

    def drain(self, seconds: float, reason: str) -> Outcome:
        """Drain, and wait.

        Raises:
            RetryableFault: The driver has not ended in time.
        """
        outcome = drain(self.reach, by=getpass.getuser(), reason=reason, seconds=seconds)
        if isinstance(outcome, StillThere):
            raise errors.RetryableFault(
                f"generation {outcome.generation} was asked to drain, but {outcome.reason}",
                where=f"stream {self.spec.name}",
                remedy="wait for its batch, or end it: ingest-platform stream restart "
                f"{self.spec.name}",
            )
        return self._gone(outcome)

    def restart(self, drain_seconds: float, start_seconds: float, reason: str) -> Outcome:
        """Get a successor ready, drain, end what does not drain in time, and let it take over.

        Raises:
            StreamPausedError: Someone paused it.
            IngestError: As `start`.
        """
        outcome = turnover(
            self.reach,
            Patience(drain_seconds, start_seconds),
            by=getpass.getuser(),
            reason=reason,
            overlap=self.spec.supervision.overlap,
        )
        if not isinstance(outcome, Started):
            raise driver_error(outcome)
        return self._runs(outcome)

    def pause(self, reason: str) -> Outcome:
        """Want no driver until `resume`; one that runs finishes its batch and exits."""
        control = self.reach.stores.control
        pause = control.read().pause
        if pause is None:
            since = self.reach.now().isoformat(timespec="seconds")
            pause = Pause(getpass.getuser(), since, reason)
            control.pause(pause)
        because = f" ({pause.reason})" if pause.reason else ""
        return Outcome(
            f"{self.spec.name} is paused by {pause.by} since {pause.since}{because}; "
            f"resume it with: ingest-platform stream resume {self.spec.name}",
            {"name": self.spec.name, "paused": True, "by": pause.by, "since": pause.since,
             "reason": pause.reason},
        )  # fmt: skip

    def resume(self) -> Outcome:
        """Take a pause back; without one, nothing happens."""
        control = self.reach.stores.control
        paused = control.read().pause is not None
        control.resume()
        done = "is no longer paused" if paused else "was not paused"
        return Outcome(
            f"{self.spec.name} {done}; a running supervisor starts it, or: "
            f"ingest-platform stream start {self.spec.name}",
            {"name": self.spec.name, "paused": False, "was_paused": paused},
        )

    def _runs(self, outcome: Started) -> Outcome:
        status = outcome.status
        done = "launched" if outcome.runs_at else "already there"
        return Outcome(
            f"{self.spec.name} runs: generation {status.generation}, {done}, process "
            f"{status.runs_at.pid} on {status.runs_at.host}",
            {"name": self.spec.name, "running": True, "launched": outcome.runs_at is not None,
             "generation": status.generation, "host": status.runs_at.host,
             "pid": status.runs_at.pid, "log": (outcome.runs_at or status.runs_at).log},
        )  # fmt: skip

    def _gone(self, outcome: Ended) -> Outcome:
        which = f"generation {outcome.generation} has ended" if outcome.generation else (
            "no driver was there"
        )  # fmt: skip
        return Outcome(
            f"{self.spec.name}: {which}; a running supervisor starts another one unless the "
            "stream is paused",
            {"name": self.spec.name, "running": False, "generation": outcome.generation},
        )


def driver_error(outcome: NotStarted | Refused) -> IngestError:
    """The driver's own error where it told one, so that the exit code is the driver's."""
    told = outcome.error
    kind = getattr(errors, told.kind, None) if told else None
    if told and isinstance(kind, type) and issubclass(kind, IngestError):
        return kind(told.message, where=f"log {outcome.runs_at.log}", remedy=told.remedy)
    tail = "\n".join(outcome.tail.splitlines()[-5:])
    return ServiceStartError(
        f"{outcome.reason}; its log ends with:\n{tail}" if tail else outcome.reason,
        where=f"log {outcome.runs_at.log}",
        remedy="read the log; a driver that is merely slow goes on starting: "
        "ingest-platform status",
    )
