"""Bytes that a JVM's live objects take: a full collection, then what the heap holds.

Only this tells a leak from garbage that was not collected yet.
"""

from __future__ import annotations

import re

from ingest_platform_tests.benchmarks.attach import jcmd

# Parallel, serial and G1 heaps, in the lines of `GC.heap_info`.
_GENERATION = re.compile(
    r"^\s*(?:PSYoungGen|ParOldGen|def new generation|tenured generation|garbage-first heap)\s"
    r".*?used (\d+)K",
    re.MULTILINE,
)

_HISTOGRAM_ROW = re.compile(r"\s*\d+:\s+\d+\s+(\d+)\s+(\S+)")


def live_heap(pid: int) -> int:
    """Collect fully and return the bytes in use; the JVM stops for a few hundred milliseconds.

    Raises:
        OSError: The JVM is gone or does not let itself be attached to.
        ValueError: It uses a collector that is not known here.
    """
    jcmd(pid, "GC.run")
    info = jcmd(pid, "GC.heap_info")
    used = [int(kilobytes) for kilobytes in _GENERATION.findall(info)]
    if not used:
        raise ValueError(f"no heap that is known in: {info.splitlines()[:3]}")
    return sum(used) * 1024


def class_histogram(pid: int) -> dict[str, int]:
    """Bytes of live objects by class, after a full collection.

    Raises:
        OSError: As `live_heap`.
    """
    rows = jcmd(pid, "GC.class_histogram").splitlines()
    found = (_HISTOGRAM_ROW.match(row) for row in rows)
    return {match[2]: int(match[1]) for match in found if match}
