"""Which process is which: a pid alone may be reused, a pid with its kernel start time may not."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import psutil

from ingest_platform.model.status import RunsAt


def this_process(log: str = "", environ: Mapping[str, str] | None = None) -> RunsAt:
    """Where the calling process runs, for its status document.

    Args:
        log: Where its output goes.
        environ: Tells a pod which Job it belongs to.
    """
    pid, environ = os.getpid(), environ or {}
    job, namespace = environ.get("INGEST_JOB", ""), environ.get("INGEST_NAMESPACE", "")
    return RunsAt(
        launcher="kubernetes" if job else "local",
        host=environ.get("INGEST_POD") or socket.gethostname(),
        pid=pid,
        started_ticks=started_ticks(pid) or 0.0,
        log=f"kubectl logs -n {namespace} job/{job}" if job else log,
        job=job,
        namespace=namespace if job else "",
    )


def this_holder() -> str:
    """The calling process, as leases and markers name it: `HOST:PID`."""
    return f"{socket.gethostname()}:{os.getpid()}"


def started_ticks(pid: int) -> float | None:
    """The kernel's start time of a process; None when there is none, or it is a zombie.

    On Linux these are clock ticks since boot, which setting the clock does not change;
    `psutil.Process.create_time` adds the boot time, which it does change.
    """
    try:
        # The command's name stands in parentheses and may itself hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        return _created(pid) if not Path("/proc/self/stat").exists() else None
    except (ProcessLookupError, PermissionError):
        return None
    return None if fields[0] in "ZXx" else float(fields[19])


def _created(pid: int) -> float | None:
    """The same on systems without `/proc`."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def session_members(session: int, since_ticks: float) -> list[int]:
    """Pids of the processes in a session that started no earlier than `since_ticks`."""
    return [pid for pid in psutil.pids() if _belongs(pid, session, since_ticks)]


def is_java(pid: int) -> bool:
    """Whether the process is a JVM."""
    try:
        return Path(psutil.Process(pid).exe()).name == "java"
    except psutil.Error:
        return False


def descendants(pid: int) -> list[int]:
    """Pids of a process's children and theirs."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _belongs(pid: int, session: int, since_ticks: float) -> bool:
    ticks = started_ticks(pid)
    try:
        return ticks is not None and ticks >= since_ticks and os.getsid(pid) == session
    except OSError:
        return False  # it ended meanwhile
