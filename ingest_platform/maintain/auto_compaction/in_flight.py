"""`with dml_in_flight(table): ...`: automatic compaction keeps out of the way of a user's DML.

A MERGE, UPDATE or DELETE fails when an OPTIMIZE replaces files that it has read, perhaps after
minutes of work. Appends need no announcement: they never conflict with compaction.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pydantic import TypeAdapter, ValidationError

from ingest_platform.adapters.objects import ObjectStore, object_store
from ingest_platform.adapters.processes import this_holder
from ingest_platform.errors import IngestError, UserError
from ingest_platform.maintain.auto_compaction.markers import TTL_SECONDS, Marker, markers_folder
from ingest_platform.spec import StorageEnvironment
from ingest_platform.spec.fields import StoragePath

log = logging.getLogger(__name__)

# How long DML waits for an attempt in the same process that it has stopped.
SETTLE_SECONDS: Final = 5.0

_BEATS_PER_TTL: Final = 4
_PATH: Final = TypeAdapter(StoragePath)


_Listener = tuple[Callable[[], None], threading.Event]


class Listeners:
    """Who in this process wants to know at once that DML on a table begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_table: dict[str, list[_Listener]] = {}

    @contextmanager
    def listening(
        self, table: str, begun: Callable[[], None], gone: threading.Event
    ) -> Iterator[None]:
        """Have `begun` called, in the thread of the DML, while the block runs.

        The DML goes on when `gone` is set, or after `SETTLE_SECONDS`.
        """
        listener = (begun, gone)
        with self._lock:
            self._by_table.setdefault(table, []).append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._by_table[table].remove(listener)

    def tell(self, table: str) -> None:
        """DML on `table` begins; return when those who listen are out of its way."""
        with self._lock:
            told = list(self._by_table.get(table, ()))
        for begun, _ in told:
            begun()
        for _, gone in told:
            # DML that reads its snapshot after they are gone cannot conflict with them.
            gone.wait(SETTLE_SECONDS)


LISTENERS: Final = Listeners()


@contextmanager
def dml_in_flight(
    table: str,
    *,
    state_path: str | None = None,
    environ: Mapping[str, str] | None = None,
    ttl: float = TTL_SECONDS,
) -> Iterator[None]:
    """Announce a MERGE, UPDATE, DELETE or overwrite of `table` while the block runs.

    Asynchronous auto compaction of the table then yields, in every driver: one that is queued is
    put off, one that runs is cancelled, one that is about to commit is turned back. Scheduled
    compaction waits, for two minutes of a run, and leaves the rest to the next one. Blocks may
    overlap and nest. A process that dies inside the block is forgotten after `ttl`.

    Args:
        table: Path of the Delta table, as in the stream's spec.
        state_path: The stream's `state_path`, if its spec has one.
        environ: Where the storage's credentials are; the process's environment by default.
        ttl: Seconds after which the marker counts for nothing if this process stops renewing it.

    Raises:
        UserError: A path is no storage path.
        IngestError: The marker cannot be written; the DML has not begun.
    """
    path = _checked(table, "table")
    root = _checked(state_path, "state_path") if state_path else _default_root(path)
    storage = StorageEnvironment.from_env(os.environ if environ is None else environ)
    with _marked(object_store(root, storage), path, ttl):
        LISTENERS.tell(path)
        yield


@contextmanager
def _marked(objects: ObjectStore, table: str, ttl: float) -> Iterator[None]:
    key = f"{markers_folder(table)}/{uuid.uuid4()}.json"
    by = this_holder()
    ended = threading.Event()

    def renew() -> None:
        beat = 0
        while not ended.wait(ttl / _BEATS_PER_TTL):
            beat += 1
            try:
                objects.put(key, Marker(by, beat, ttl).to_json().encode())
            except IngestError as error:
                log.warning("marker of DML in flight not renewed: %s", error.what)

    objects.put(key, Marker(by, 0, ttl).to_json().encode())
    renewal = threading.Thread(target=renew, name="dml-in-flight", daemon=True)
    renewal.start()
    try:
        yield
    finally:
        ended.set()
        renewal.join()  # or its last beat would put the marker back after the removal
        try:
            objects.delete(key)
        except IngestError as error:
            # The DML itself is done; its outcome must not be hidden by this.
            log.warning("marker of DML in flight expires by itself: %s", error.what)


def _default_root(table: str) -> str:
    """As `StreamSpec.root` has it."""
    return f"{table.rpartition('/')[0]}/_ingest"


def _checked(path: str, name: str) -> str:
    try:
        return _PATH.validate_python(path)
    except ValidationError as error:
        raise UserError(
            f"{path!r} is no storage path: {error.errors()[0]['msg']}",
            where=f"{name} of dml_in_flight",
            remedy="give it as in the stream's spec: s3a://bucket/prefix or an absolute path",
        ) from error
