"""The jar lock, read: which jars the platform loads, where they come from and what they contain."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ingest_platform.errors import JarLockError

JarSet = Literal["spark", "kafka", "s3"]

LOCK_FILE = Path(__file__).with_name("jars.lock.toml")

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Jar:
    """One locked jar.

    Attributes:
        maven: `group:artifact:version`, with `:classifier` where there is one.
        path: Place below the Maven root, with forward slashes.
        sha256: Of the whole file, in lower-case hexadecimal.
        size: In bytes.
        set: Who loads it: Spark, the embedded broker, or the embedded S3 server.
    """

    maven: str
    path: str
    sha256: str
    size: int
    set: JarSet

    def __post_init__(self) -> None:
        """Refuse an entry whose path, checksum or set cannot be right (ValueError)."""
        group, artifact, version = self.maven.split(":")[:3]
        expected = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
        # The path becomes a file name in the cache, so a slip here must not reach outside of it.
        if not self.path.startswith(expected) or ".." in self.path:
            raise ValueError(f"path {self.path!r} of {self.maven} must begin with {expected!r}")
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"sha256 {self.sha256!r} of {self.maven} must be 64 hex digits")
        if self.set not in get_args(JarSet):
            raise ValueError(f"set {self.set!r} of {self.maven} must be one of {get_args(JarSet)}")

    @property
    def artifact(self) -> str:
        """Artifact with its Scala suffix, such as `delta-spark_4.2_2.13`."""
        return self.maven.split(":")[1]

    @property
    def version(self) -> str:
        """Version as Maven writes it."""
        return self.maven.split(":")[2]


@dataclass(frozen=True)
class JarLock:
    """All locked jars, in the order of the file, which is the order on the class path."""

    jars: tuple[Jar, ...]
    source: Path = LOCK_FILE

    def of(self, jar_set: JarSet) -> tuple[Jar, ...]:
        """The jars that one consumer loads."""
        return tuple(jar for jar in self.jars if jar.set == jar_set)

    def find(self, artifact: str) -> Jar | None:
        """The Spark jar of this artifact, given without its Spark and Scala suffix."""
        pattern = re.compile(re.escape(artifact) + r"(_[\d.]+)*")
        return next((jar for jar in self.of("spark") if pattern.fullmatch(jar.artifact)), None)


def load_lock(path: Path = LOCK_FILE) -> JarLock:
    """Read a lock file.

    Raises:
        JarLockError: The file cannot be read, an entry breaks a rule, or a jar is named twice.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        jars = tuple(_jar(entry) for entry in raw.get("jar", []))
        _refuse_twins(jars)
    except (OSError, ValueError, TypeError) as e:
        raise JarLockError(
            f"the jar lock is not readable: {e}",
            where=str(path),
            remedy="restore the file from version control",
        ) from e
    return JarLock(jars, path)


def _jar(entry: Mapping[str, Any]) -> Jar:
    return Jar(**entry)


def _refuse_twins(jars: tuple[Jar, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for jar in jars:
        key = (jar.set, jar.artifact)
        if key in seen:
            raise ValueError(f"{jar.artifact} is named twice in set {jar.set!r}")
        seen.add(key)
