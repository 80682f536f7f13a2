"""Spark's checkpoint, read as the write-ahead log that it is, and held against the table.

`offsets/N` is written before batch N runs and names where it ends; `commits/N` is written after it.
Both are what a restart will use, so they are the truth about what a batch reads. Format:
`OffsetSeqLog` of Spark 4: a version line, a metadata line, then one line of JSON per source.
"""

from __future__ import annotations

import json
import re
from typing import Final

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.errors import CheckpointDamagedError
from ingest_platform.model.ledger import Ledger
from ingest_platform.model.offsets import OffsetRanges, Positions

_REMEDY: Final = (
    "nothing was changed; `ingest-platform repair plan` with the stream's name shows how to go on"
)

_CHECKSUM: Final = re.compile(r"\.(\d+)\.crc")


class Checkpoint:
    """One stream's checkpoint folder, below an object store's root."""

    def __init__(self, objects: ObjectStore, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix
        self._positions: dict[int, Positions] = {}

    @property
    def path(self) -> str:
        """Where Spark writes it."""
        return f"{self._objects.root}/{self._prefix}"

    def lineage(self) -> str | None:
        """Spark's id of the query, made anew with each checkpoint; None before the first start."""
        raw = self._objects.get(f"{self._prefix}/metadata")
        if raw is None:
            return None
        try:
            return str(json.loads(raw)["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged("metadata", f"is not what Spark wrote ({error})") from error

    def ranges(self, batch: int) -> OffsetRanges:
        """What `batch` reads: from the end of the batch before it to its own end.

        Raises:
            CheckpointDamagedError: A file that says so is missing or torn.
        """
        start = self._positions_after(batch - 1) if batch else self._initial()
        end = self._positions_after(batch)
        for stale in [b for b in self._positions if b < batch]:
            del self._positions[stale]
        return OffsetRanges.between(start, end)

    def planned(self) -> int:
        """Newest batch in `offsets/`; -1 if none."""
        return max(self._batches("offsets"), default=-1)

    def finished(self) -> int:
        """Newest batch in `commits/`; -1 if none."""
        return max(self._batches("commits"), default=-1)

    def verify(self) -> None:
        """Read what a restart will read.

        Raises:
            CheckpointDamagedError: A restart would fail, or start somewhere else than it ended.
        """
        lineage, planned = self.lineage(), self.planned()
        if lineage is None and planned >= 0:
            raise self._damaged("metadata", "is missing although batches were planned")
        if planned >= 0:
            self.ranges(planned)
        finished = self.finished()
        if finished > planned:
            raise self._damaged(f"offsets/{finished}", f"is missing, but commits/{finished} exists")

    def agree_with(self, ledger: Ledger | None, stream: str) -> None:
        """Refuse to start where the table and the checkpoint tell different stories.

        Args:
            ledger: Of the stream's newest data commit in the table, if there is one.
            stream: For the message.

        Raises:
            CheckpointDamagedError: Going on would lose or double records.
        """
        lineage, planned, finished = self.lineage(), self.planned(), self.finished()
        if ledger is None:
            if finished >= 0:
                raise self._damaged(
                    "", f"has finished batch {finished}, but the table holds none of {stream}"
                )
            return
        if lineage is None:
            raise self._damaged(
                "", f"is missing, but the table holds batch {ledger.batch} of {stream}"
            )
        if lineage != ledger.session:
            raise self._damaged(
                "", f"is of session {lineage}, but the table's newest is {ledger.session}"
            )
        if ledger.batch > planned:
            raise self._damaged(
                "",
                f"knows batch {planned} at most, but the table holds batch {ledger.batch}: "
                "it was rolled back",
            )
        if finished > ledger.batch:
            raise self._damaged(
                "",
                f"has finished batch {finished}, but the table's newest is {ledger.batch}: "
                "the table was rolled back",
            )
        if ledger.offsets.to_ledger() != self.ranges(ledger.batch).to_ledger():
            raise self._damaged(
                f"offsets/{ledger.batch}", "names other offsets than the table's ledger"
            )

    def begins_at(self, start: Positions) -> None:
        """Refuse a checkpoint that is not the one that begins after a repair.

        Args:
            start: Where the repair lets the next session start.

        Raises:
            CheckpointDamagedError: It is an older one, which reads what the repair settled.
        """
        finished = self.finished()
        if finished >= 0:
            raise self._damaged(
                "", f"has finished batch {finished}, but the table holds none since its repair"
            )
        if self.planned() < 0 and self._objects.get(f"{self._prefix}/sources/0/0") is None:
            return  # killed while it was made: Spark takes the start from the options again
        initial = self._initial()
        for topic, partition, offset in start:
            found = initial.get(topic, partition)
            if found is not None and found != offset:
                raise self._damaged(
                    "sources/0/0",
                    f"starts {topic}-{partition} at {found}, but the repair says {offset}",
                )

    def remove_stale_checksums(self) -> None:
        """Remove Hadoop's `.N.crc` where the file `N` itself is gone.

        Spark runs that batch again then, and fails to write `N` as long as the old checksum is
        there: for ever, if nobody removes it.
        """
        for folder in ("offsets", "commits"):
            batches = set(self._batches(folder))
            for key in self._objects.list(f"{self._prefix}/{folder}"):
                match = _CHECKSUM.fullmatch(key.rpartition("/")[2])
                if match and int(match[1]) not in batches:
                    self._objects.delete(key)

    def _initial(self) -> Positions:
        raw = self._objects.get(f"{self._prefix}/sources/0/0")
        if raw is None:
            raise self._damaged("sources/0/0", "is missing")
        text = raw.decode().lstrip("\x00")
        return self._parse("sources/0/0", text.partition("\n")[2].strip())

    def _positions_after(self, batch: int) -> Positions:
        if batch not in self._positions:
            name = f"offsets/{batch}"
            raw = self._objects.get(f"{self._prefix}/{name}")
            if raw is None:
                raise self._damaged(name, "is missing")
            lines = raw.decode(errors="replace").splitlines()
            if len(lines) < 3 or not lines[0].startswith("v"):
                raise self._damaged(name, f"is truncated: {len(lines)} lines, 3 expected")
            self._positions[batch] = self._parse(name, lines[2])
        return self._positions[batch]

    def _parse(self, name: str, text: str) -> Positions:
        try:
            return Positions.from_json(text)
        except (ValueError, AttributeError, TypeError) as error:
            raise self._damaged(name, f"holds no offsets ({error})") from error

    def _batches(self, folder: str) -> list[int]:
        prefix = f"{self._prefix}/{folder}/"
        names = (key.removeprefix(prefix) for key in self._objects.list(f"{self._prefix}/{folder}"))
        return [int(name) for name in names if name.isdigit()]

    def _damaged(self, file: str, finding: str) -> CheckpointDamagedError:
        what = f"checkpoint {file}".strip()
        return CheckpointDamagedError(f"{what} {finding}", where=self.path, remedy=_REMEDY)
