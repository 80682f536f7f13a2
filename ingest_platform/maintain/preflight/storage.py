"""Can the stream's places be read and written, and are conditional writes really enforced?

Each place is tried with a probe object of its own, which is removed again.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from threading import Lock

from ingest_platform.adapters.objects import ObjectStore, object_store, prove_conditional_create
from ingest_platform.adapters.s3_objects import s3_client
from ingest_platform.errors import IngestError, StorageDeniedError
from ingest_platform.maintain.preflight.findings import Finding, of_error, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.spec import StorageEnvironment, StreamSpec

PROBES = "_ingest_probe"  # Delta and Spark pass over folders that begin with an underscore

# Streams share folders: one probe must not remove the folder that another is about to write into.
_ONE_AT_A_TIME = Lock()
_LITTLE_SPACE = 1_000_000_000
_SKEW = timedelta(seconds=30)
_SKEW_REFUSED = timedelta(minutes=15)  # S3 refuses signatures beyond it


def check_storage(
    spec: StreamSpec, environ: Mapping[str, str], now: Callable[[], datetime]
) -> Iterator[Finding]:
    """Try table, quarantine and state folder of one stream."""
    storage = StorageEnvironment.from_env(environ)
    places = {spec.table.path: "table", spec.table.quarantine: "quarantine", spec.root: "state"}
    for path, role in places.items():
        finding = _try(path, role, storage, spec.name)
        yield finding
        if finding.level is Level.OK and not path.startswith("s3a://"):
            yield from _space(Path(path), spec.name)
    if any(path.startswith("s3a://") for path in places):
        yield from _clock(spec, storage, now)


def _try(path: str, role: str, storage: StorageEnvironment, stream: str) -> Finding:
    try:
        with _leaving_no_folders(path):
            objects = object_store(path, storage)
            _read_write(objects)
            prove_conditional_create(objects, PROBES)
    except IngestError as error:
        why = f"the {role} cannot be used safely; nothing would be committed"
        return of_error(Group.STORAGE, error, why, stream)
    return ok(
        Group.STORAGE,
        f"{role} {path}: read, write, list and delete work, conditional writes hold",
        stream,
    )


def _read_write(objects: ObjectStore) -> None:
    """Write, read, list and delete a probe.

    Raises:
        StorageDeniedError: One of them does not do what it should.
    """
    key = f"{PROBES}/{uuid.uuid4().hex}"
    objects.put(key, b"probe")
    try:
        back, listed = objects.get(key), key in objects.list(PROBES)
    finally:
        objects.delete(key)
    if back != b"probe" or not listed or objects.get(key) is not None:
        raise StorageDeniedError(
            "a probe object could not be read back, listed or deleted",
            where=f"{objects.root}/{PROBES}",
            remedy="check the policy (Get, Put, List, Delete), and proxies that cache",
        )


@contextmanager
def _leaving_no_folders(path: str) -> Iterator[None]:
    """Remove the folders that a probe made on a file system: a check leaves nothing behind."""
    if path.startswith("s3a://"):
        yield
        return
    folder = Path(path)
    with _ONE_AT_A_TIME:
        made = [p for p in (folder, *folder.parents) if not p.exists()]
        try:
            yield
        finally:
            for empty in (folder / PROBES, *made):
                with suppress(OSError):
                    empty.rmdir()


def _space(path: Path, stream: str) -> Iterator[Finding]:
    existing = next(p for p in (path, *path.parents) if p.exists())
    free = shutil.disk_usage(existing).free
    if free < _LITTLE_SPACE:
        yield Finding(
            Level.WARNING,
            Group.STORAGE,
            Kind.DISK_SPACE,
            f"{existing} has {free / 1e6:,.0f} MB left",
            "the stream stops when the disk is full",
            "free space, or choose another path",
            stream,
        )


def _clock(
    spec: StreamSpec, storage: StorageEnvironment, now: Callable[[], datetime]
) -> Iterator[Finding]:
    """Compare this machine's clock with the `Date` of the object store's answer."""
    bucket = next(p for p in (spec.table.path, spec.root) if p.startswith("s3a://")).split("/")[2]
    try:
        answer = s3_client(storage).head_bucket(Bucket=bucket)
        date = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    except Exception:  # noqa: BLE001 - denied or silent: said by the probes; no date: nothing to say
        return
    skew = abs(now() - date)
    if skew > _SKEW:
        yield Finding(
            Level.ERROR if skew > _SKEW_REFUSED else Level.WARNING,
            Group.STORAGE,
            Kind.STORAGE_CLOCK,
            f"this machine's clock is {skew.total_seconds():.0f} s off that of {bucket}",
            "S3 refuses requests from 15 minutes on, and commit times mislead people",
            "synchronise the clock (NTP)",
            spec.name,
        )
