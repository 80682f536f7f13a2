"""A JVM of its own that writes Delta log files through a LogStore, as a driver would."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from ingest_platform.spark.java import Java
from ingest_platform.spark.logstore.compile import compile_java, spark_jars_for_compiler

SOURCE = Path(__file__).with_name("LogWriter.java")

Outcome = str
"""`committed`, `exists`, or `error CLASS: MESSAGE`."""


class LogWriter:
    """One writer; ends with the test, or by itself when the test's process dies."""

    def __init__(
        self,
        logstore: str,
        *,
        java: Java,
        class_path: Sequence[str],
        settings: Mapping[str, str],
        log: Path,
    ) -> None:
        command = [str(java.executable), "-Xmx512m", "-cp", ":".join(class_path)]
        command += ["ingest.platform.tests.LogWriter", logstore]
        command += [f"{key}={value}" for key, value in settings.items()]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def begin(self, uri: str, payload: str, *, lines: int = 1, break_after: int = -1) -> None:
        """Start a write; `finish` tells how it went."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{uri}|{payload}|{lines}|{break_after}\n")
        self._process.stdin.flush()

    def finish(self) -> Outcome:
        """Wait for the write that was begun."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("> "):
                return line[2:].strip()
        raise AssertionError(f"the writer ended with exit code {self._process.wait()}")

    def write(self, uri: str, payload: str, *, lines: int = 1, break_after: int = -1) -> Outcome:
        """Write one file of the log and wait for the outcome."""
        self.begin(uri, payload, lines=lines, break_after=break_after)
        return self.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def compile_log_writer(out: Path, *, java: Java, spark_jars: Path, delta_storage: Path) -> Path:
    """Compile the writer's class below `out`, and return `out` for the class path."""
    out.mkdir(parents=True, exist_ok=True)
    jars = [*spark_jars_for_compiler(spark_jars), delta_storage]
    compile_java([SOURCE], out, java=java, jars=jars)
    return out
