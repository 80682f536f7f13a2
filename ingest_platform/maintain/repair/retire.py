"""Back up a checkpoint, then remove it: the next session makes a new one, with a new lineage."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from ingest_platform.adapters.objects import ObjectStore

_PARALLEL = 8
_COMPLETE = "_complete.json"  # last of the copy: only a whole one may stand in for the original


def retire(objects: ObjectStore, checkpoint: str, backup: str) -> int:
    """Move the objects below `checkpoint` to below `backup`; returns how many the backup holds.

    Cut off anywhere and called again, it ends in the same state: the original is touched only once
    the backup is complete, and a complete backup is not written to again.
    """
    marker = f"{backup}/{_COMPLETE}"
    done = objects.get(marker)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        if done is None:
            keys = objects.list(checkpoint)
            list(pool.map(lambda key: _copy(objects, key, _moved(key, checkpoint, backup)), keys))
            done = json.dumps({"files": len(keys)}).encode()
            objects.put(marker, done)
        metadata = f"{checkpoint}/metadata"
        rest = [key for key in objects.list(checkpoint) if key != metadata]
        list(pool.map(objects.delete, rest))
    # Last: what is left of a checkpoint without it is refused with a less telling message.
    objects.delete(metadata)
    return int(json.loads(done)["files"])


def _moved(key: str, checkpoint: str, backup: str) -> str:
    return f"{backup}{key.removeprefix(checkpoint)}"


def _copy(objects: ObjectStore, source: str, target: str) -> None:
    data = objects.get(source)
    if data is not None:
        objects.put(target, data)
