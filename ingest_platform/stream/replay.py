"""Rejected records through a corrected schema: from the quarantine into the table, exactly once.

Two tables cannot be committed at once, so the commit in the table comes first and says how many
rows it brought; then the quarantine gives up what the table holds. After a kill between the two,
the numbers of their last replays differ, and the next replay begins with what was left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql import types as T  # noqa: N812

from ingest_platform.model.account import ReplayRecord, replay_app_id
from ingest_platform.spec import StreamSpec
from ingest_platform.stream.batch import table_rows
from ingest_platform.stream.decode import COORDINATES, REASON, UNEXPECTED, Decoder
from ingest_platform.stream.table import TableColumns
from ingest_platform.stream.transaction import Transaction

log = logging.getLogger(__name__)

_PLACE: Final = tuple(COORDINATES)  # with the timestamp: a topic made anew has its offsets twice


@dataclass(frozen=True)
class Replayed:
    """What a replay did.

    Attributes:
        rows: Records that became rows of the table; 0: none could.
        left: Records that stay in the quarantine.
        finished: A replay that had been cut off was brought to its end first.
    """

    rows: int
    left: int
    finished: bool = False


@dataclass(frozen=True)
class Replay:
    """One stream's replay.

    Attributes:
        spark: The session.
        spec: The stream, with the corrected schema.
        data: Columns that values are decoded into.
        columns: Columns of the table.
        transform: The user's function.
        writers: Tasks that write files.
        fence: Raises if a repair is under way; asked before each commit.
        reached: Told of each commit, for fault tests.
    """

    spark: SparkSession
    spec: StreamSpec
    data: T.StructType
    columns: TableColumns
    transform: Callable[[DataFrame], DataFrame]
    writers: int
    fence: Callable[[], None]
    reached: Callable[[str], None] = lambda _: None

    def run(self) -> Replayed:
        """Move what the schema accepts now.

        Raises:
            RepairUnderWayError: A repair takes rows out of the same tables.
        """
        table, quarantine = self.spec.table.path, self.spec.table.quarantine
        app_id = replay_app_id(self.spec.name)
        number = Transaction(self.spark, table).last_batch(app_id)
        unfinished = number > Transaction(self.spark, quarantine).last_batch(app_id)
        if unfinished:
            log.info("replay %d was cut off; it is brought to its end", number)
            self._give_up(number)
        rows = self._append(max(number, 0) + 1)
        if rows:
            self._give_up(max(number, 0) + 1)
        left = self._read(quarantine).count()
        return Replayed(rows, left, unfinished)

    def _append(self, number: int) -> int:
        txn = Transaction(self.spark, self.spec.table.path)
        app_id = replay_app_id(self.spec.name)
        txn.last_batch(app_id)  # two replays at once are a conflict then
        good = self._accepted(self._settled())
        rows = table_rows(good, self.spec, self.columns.written, self.transform)
        moved = sum(file.records for file in txn.write(rows.coalesce(self.writers)))
        if moved:
            self.fence()
            txn.commit(app_id, number, self._record(number, moved))
            self.reached("table")
        return moved

    def _settled(self) -> DataFrame:
        """Records of batches that are over: an open batch may yet be repeated, and decoded anew."""
        # Asked of a transaction that is thrown away: in the one that commits, each batch of a
        # running stream would be a conflict.
        asked = Transaction(self.spark, self.spec.table.path)
        rejected = self._read(self.spec.table.quarantine)
        sessions = [row.session for row in rejected.select("session").distinct().collect()]
        settled = F.lit(False)
        for session in sessions:
            mine = F.col("session") == session
            settled = settled | (mine & (F.col("batch") <= asked.last_batch(session)))
        return rejected.filter(settled)

    def _accepted(self, rejected: DataFrame) -> DataFrame:
        as_kafka = [F.col(name).alias(source) for name, source in COORDINATES.items()]
        records = rejected.select("key", "value", *as_kafka)
        decoder = Decoder(self.data, self.spec.decode, self.columns.reserved)
        decoded = decoder.rows(records)
        good = decoded.filter(F.col(REASON).isNull())
        if self.spec.decode.unexpected_fields != "add_columns":
            return good
        # Columns are added by the stream only; what would need one waits in the quarantine.
        known = F.array(*[F.lit(name.lower()) for name in self.columns.written.names])
        fields = F.coalesce(F.map_keys(UNEXPECTED), F.array().cast("array<string>"))
        return good.filter(F.forall(fields, lambda name: F.array_contains(known, F.lower(name))))

    def _give_up(self, number: int) -> None:
        """Remove from the quarantine what the table holds now."""
        path = self.spec.table.quarantine
        places = self._read(self.spec.table.path).select(*_PLACE)
        self.fence()
        target = DeltaTable.forPath(self.spark, path).alias("rejected")
        target.merge(places.alias("held"), _same_place()).whenMatchedDelete().execute()
        self.reached("quarantine")
        txn = Transaction(self.spark, path)
        txn.last_batch(replay_app_id(self.spec.name))
        txn.commit(replay_app_id(self.spec.name), number, self._record(number, 0))

    def _read(self, path: str) -> DataFrame:
        return self.spark.read.format("delta").load(path)

    def _record(self, number: int, rows: int) -> str:
        return ReplayRecord(self.spec.name, number, rows).to_user_metadata()


def _same_place() -> Column:
    condition = F.lit(True)
    for name in _PLACE:
        condition = condition & (F.col(f"rejected.{name}") == F.col(f"held.{name}"))
    return condition
