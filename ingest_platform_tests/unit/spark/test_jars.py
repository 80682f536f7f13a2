"""Downloads against a real HTTP server that can break off, lie and fail."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console

from ingest_platform.errors import JarLockError
from ingest_platform.spark.jar_lock import Jar, JarLock
from ingest_platform.spark.jars import JarCache, ensure

CONTENT = bytes(range(256)) * 1000


def jar(name: str, content: bytes = CONTENT) -> Jar:
    return Jar(
        maven=f"org.example:{name}:1",
        path=f"org/example/{name}/1/{name}-1.jar",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        set="spark",
    )


@dataclass
class Repository:
    """A Maven repository; the tests set what it does wrong."""

    url: str = ""
    content: bytes = CONTENT
    break_off_after: int | None = None
    statuses: list[int] = field(default_factory=list)
    ranges: list[str | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


@pytest.fixture
def repository() -> Iterator[Repository]:
    repo = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with repo.lock:
                asked = self.headers.get("Range")
                repo.ranges.append(asked)
                status = repo.statuses.pop(0) if repo.statuses else None
                limit, repo.break_off_after = repo.break_off_after, None
            if status:
                self.send_error(status)
                return
            start = int(re.findall(r"\d+", asked)[0]) if asked else 0
            rest = repo.content[start:]
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[:limit])

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    repo.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield repo
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cache(repository: Repository, tmp_path: Path) -> JarCache:
    return JarCache(tmp_path / "cache", repository.url, attempts=3, max_wait=0.01)


def test_present_jars_are_not_asked_for(repository: Repository, cache: JarCache) -> None:
    lock = JarLock((jar("a"), jar("b")))
    paths = ensure("spark", cache=cache, lock=lock)
    assert [p.read_bytes() for p in paths] == [CONTENT, CONTENT]
    asked = len(repository.ranges)
    assert ensure("spark", cache=cache, lock=lock) == paths
    assert len(repository.ranges) == asked == 2


def test_a_broken_off_download_is_continued(repository: Repository, cache: JarCache) -> None:
    """On a bad line a download that starts anew each time may never end."""
    repository.break_off_after = 100_000
    [path] = ensure("spark", cache=cache, lock=JarLock((jar("a"),)))
    assert path.read_bytes() == CONTENT
    assert repository.ranges[0] is None
    assert repository.ranges[1] is not None
    assert 0 < int(repository.ranges[1].removeprefix("bytes=").rstrip("-")) <= 100_000


def test_a_killed_run_is_continued(repository: Repository, cache: JarCache) -> None:
    part = cache.path_of(jar("a")).with_name("a-1.jar.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:1234])
    [path] = ensure("spark", cache=cache, lock=JarLock((jar("a"),)))
    assert path.read_bytes() == CONTENT
    assert repository.ranges == ["bytes=1234-"]
    assert not part.exists()


def test_a_wrong_start_is_downloaded_anew(repository: Repository, cache: JarCache) -> None:
    """What an earlier run left may be another server's: not the server's fault, so no error."""
    part = cache.path_of(jar("a")).with_name("a-1.jar.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"\0" * 5000)
    [path] = ensure("spark", cache=cache, lock=JarLock((jar("a"),)))
    assert path.read_bytes() == CONTENT
    assert repository.ranges == ["bytes=5000-", None]


def test_wrong_content_names_both_sums(repository: Repository, cache: JarCache) -> None:
    repository.content = b"evil" * (len(CONTENT) // 4)
    with pytest.raises(JarLockError) as caught:
        ensure("spark", cache=cache, lock=JarLock((jar("a"),)))
    assert hashlib.sha256(repository.content).hexdigest() in str(caught.value)
    assert jar("a").sha256 in str(caught.value)
    assert [p for p in cache.folder.rglob("*") if "a-1" in p.name] == []


def test_a_torn_cached_jar_is_replaced(repository: Repository, cache: JarCache) -> None:
    """A JVM that loads a torn jar fails with ClassNotFoundException, hours later perhaps."""
    lock = JarLock((jar("a"),))
    [path] = ensure("spark", cache=cache, lock=lock)
    path.write_bytes(b"\0" * len(CONTENT))
    assert ensure("spark", cache=cache, lock=lock) == [path]
    assert path.read_bytes() == CONTENT


def test_a_busy_server_is_asked_again(repository: Repository, cache: JarCache) -> None:
    repository.statuses = [503, 429]
    ensure("spark", cache=cache, lock=JarLock((jar("a"),)))
    assert len(repository.ranges) == 3


def test_a_missing_jar_is_reported_at_once(repository: Repository, cache: JarCache) -> None:
    repository.statuses = [404] * 5
    with pytest.raises(JarLockError, match="404") as caught:
        ensure("spark", cache=cache, lock=JarLock((jar("a"),)))
    assert len(repository.ranges) == 1
    assert caught.value.where == f"{repository.url}/{jar('a').path}"


def test_no_server_is_reported_with_the_address(tmp_path: Path) -> None:
    cache = JarCache(tmp_path, "http://127.0.0.1:1", attempts=2, max_wait=0.01)
    with pytest.raises(JarLockError, match="INGEST_MAVEN_URL"):
        ensure("spark", cache=cache, lock=JarLock((jar("a"),)))


def test_processes_share_a_cache(repository: Repository, cache: JarCache) -> None:
    """Two `make demo` on a fresh machine: each jar is downloaded once, and whole."""
    lock = JarLock(tuple(jar(f"j{i}") for i in range(8)))
    context = multiprocessing.get_context("spawn")
    others = [
        context.Process(target=ensure, args=("spark",), kwargs={"cache": cache, "lock": lock})
        for _ in range(3)
    ]
    for other in others:
        other.start()
    for other in others:
        other.join()
        assert other.exitcode == 0
        other.close()
    assert len(repository.ranges) == 8
    assert all(cache.path_of(j).read_bytes() == CONTENT for j in lock.jars)


def test_progress_is_shown_where_a_person_waits(cache: JarCache) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    ensure("spark", cache=cache, lock=JarLock((jar("a"),)), console=console)
    assert "jars for spark" in out.getvalue()


def test_the_environment_moves_cache_and_source() -> None:
    cache = JarCache.from_env({"INGEST_JAR_CACHE": "/x/y", "INGEST_MAVEN_URL": "http://m/r/"})
    assert (cache.folder, cache.maven_url) == (Path("/x/y"), "http://m/r")
