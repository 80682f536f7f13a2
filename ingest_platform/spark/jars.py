"""Bring locked jars into a local cache: parallel, resumable, and nothing used unverified.

Sources: Maven Central's layout; RFC 9110 section 14 for range requests.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import platformdirs
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from ingest_platform.errors import DiskFullError, JarLockError
from ingest_platform.spark.jar_lock import Jar, JarLock, JarSet

MAVEN_CENTRAL = "https://repo.maven.apache.org/maven2"
PARALLEL_DOWNLOADS = 6

_CHUNK = 1 << 16
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)

OnBytes = Callable[[int], None]


@dataclass(frozen=True)
class JarCache:
    """Where jars are kept and where they come from.

    Attributes:
        folder: Holds the jars in Maven's layout; may be shared by processes and projects.
        maven_url: Root of the repository, without a slash at the end.
        attempts: Tries per jar before a network fault is given up.
        max_wait: Longest pause between two tries, in seconds.
    """

    folder: Path
    maven_url: str = MAVEN_CENTRAL
    attempts: int = 5
    max_wait: float = 20.0

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> JarCache:
        """The user's cache directory and Maven Central, unless INGEST_* variables say otherwise."""
        folder = env.get("INGEST_JAR_CACHE") or platformdirs.user_cache_path("ingest_platform/jars")
        url = env.get("INGEST_MAVEN_URL") or MAVEN_CENTRAL
        return cls(Path(folder).expanduser().absolute(), url.rstrip("/"))

    def path_of(self, jar: Jar) -> Path:
        """Where this jar is, or will be."""
        return self.folder / jar.path


def ensure(
    jar_set: JarSet, *, cache: JarCache, lock: JarLock, console: Console | None = None
) -> list[Path]:
    """Make every jar of a set present and proven, and name them in class path order.

    A cached jar is hashed again on every call (0.1 s per 50 MB): a torn disk shows here, as a
    download, and not as a ClassNotFoundException later. Processes that call this at the same time
    take turns, so each jar is downloaded once.

    Args:
        jar_set: Which consumer's jars.
        cache: Where to keep them and where to get them.
        lock: What they must be.
        console: Shows a progress bar while it downloads; silent without one.

    Raises:
        JarLockError: A download is not what was locked, or could not be had.
        DiskFullError: The cache has no space left.
    """
    jars = lock.of(jar_set)
    if _missing(jars, cache):
        with _only_one_process(cache.folder):
            missing = _missing(jars, cache)  # another process may have done it while we waited
            if missing:
                _download_all(missing, cache, f"jars for {jar_set}", console)
    return [cache.path_of(jar) for jar in jars]


def file_sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file's content."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _missing(jars: Sequence[Jar], cache: JarCache) -> list[Jar]:
    def bad(jar: Jar) -> bool:
        path = cache.path_of(jar)
        return (
            not path.is_file() or path.stat().st_size != jar.size or file_sha256(path) != jar.sha256
        )

    return [jar for jar in jars if bad(jar)]


@contextmanager
def _only_one_process(folder: Path) -> Iterator[None]:
    # flock goes with the process, so a killed download leaves nothing to clean up.
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock_file = (folder / ".download.lock").open("w")
    with lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield


def _download_all(
    jars: Sequence[Jar], cache: JarCache, title: str, console: Console | None
) -> None:
    stop = threading.Event()
    with (
        httpx.Client(timeout=_TIMEOUT, follow_redirects=True) as client,
        _progress(console) as progress,
        ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool,
    ):
        task = progress.add_task(title, total=sum(jar.size for jar in jars))

        def on_bytes(n: int) -> None:
            if stop.is_set():
                raise InterruptedError("another download failed, or the user interrupted")
            progress.advance(task, n)

        # The largest first: the tail of the run is then short files, and no core idles.
        ordered = sorted(jars, key=lambda jar: -jar.size)
        futures = [pool.submit(_download, client, jar, cache, on_bytes) for jar in ordered]
        try:
            for future in futures:
                future.result()
        except BaseException:
            # Without this, leaving the pool would wait for every download that is under way.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _progress(console: Console | None) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=console is None,
    )


def _download(client: httpx.Client, jar: Jar, cache: JarCache, on_bytes: OnBytes) -> None:
    url = f"{cache.maven_url}/{jar.path}"
    target = cache.path_of(jar)
    part = target.with_name(target.name + ".part")
    retrying = Retrying(
        retry=retry_if_exception(_heals_by_itself),
        stop=stop_after_attempt(cache.attempts),
        wait=wait_random_exponential(multiplier=0.5, max=cache.max_wait),
        reraise=True,
    )
    try:
        with _disk_errors(cache.folder):
            target.parent.mkdir(parents=True, exist_ok=True)
            retrying(_fetch, client, url, part, jar, on_bytes)
            part.replace(target)
    except httpx.HTTPError as e:
        raise JarLockError(
            f"could not download {jar.maven}: {e or type(e).__name__}",
            where=url,
            remedy="check the network and proxy settings, or point INGEST_MAVEN_URL at a mirror; "
            "what was downloaded is kept and the next run goes on from there",
        ) from e


def _fetch(client: httpx.Client, url: str, part: Path, jar: Jar, on_bytes: OnBytes) -> None:
    """Complete the `.part` file and prove it; a partial one left by an earlier run is continued."""
    resumed = _stream(client, url, part, jar, on_bytes)
    found = file_sha256(part)
    if found != jar.sha256 and resumed:
        # The earlier part may be another server's or a torn disk's: only a whole download proves
        # that the server holds something else.
        part.unlink()
        on_bytes(-jar.size)
        _stream(client, url, part, jar, on_bytes)
        found = file_sha256(part)
    if found != jar.sha256:
        part.unlink()
        raise JarLockError(
            f"{jar.maven} has sha256 {found}, but the lock says {jar.sha256}",
            where=url,
            remedy="do not use this file; check INGEST_MAVEN_URL and whatever stands between this "
            "machine and Maven Central, or review the lock",
        )


def _stream(client: httpx.Client, url: str, part: Path, jar: Jar, on_bytes: OnBytes) -> bool:
    """Download into `part`, from where it ends; return whether earlier bytes were kept."""
    have = part.stat().st_size if part.exists() else 0
    if have >= jar.size:
        on_bytes(jar.size)
        return True
    headers = {"Range": f"bytes={have}-"} if have else {}
    with client.stream("GET", url, headers=headers) as response:
        response.raise_for_status()
        kept = have if response.status_code == httpx.codes.PARTIAL_CONTENT else 0
        done = kept
        on_bytes(kept)
        with part.open("r+b" if kept else "wb") as out:
            out.seek(kept)
            try:
                for chunk in response.iter_raw(_CHUNK):
                    out.write(chunk)
                    done += len(chunk)
                    on_bytes(len(chunk))
            except httpx.TransportError:
                on_bytes(-done)  # the next try counts what it keeps
                raise
    return kept > 0


def _heals_by_itself(e: BaseException) -> bool:
    if isinstance(e, httpx.HTTPStatusError):
        return e.response.status_code >= 500 or e.response.status_code == 429
    return isinstance(e, httpx.TransportError)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if e.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFullError(
            "no space left for downloaded jars",
            where=str(folder),
            remedy="free about 200 MB there, or point INGEST_JAR_CACHE at another disk",
        ) from e
