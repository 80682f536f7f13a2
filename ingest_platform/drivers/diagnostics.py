"""What a driver leaves behind for the night watch: logs, GC log, heap dump."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ingest_platform.errors import OutOfMemoryFault


@dataclass(frozen=True)
class Diagnostics:
    """Where one driver writes what a person may need afterwards. All below one private folder.

    Attributes:
        folder: The stream's log folder.
    """

    folder: Path

    @property
    def gc_log(self) -> Path:
        """Rotating: 5 files of 10 MB."""
        return self.folder / "gc.log"

    @property
    def spark_log(self) -> Path:
        """Rotating: 5 files of 20 MB."""
        return self.folder / "spark.log"

    @property
    def heap_dumps(self) -> Path:
        """One dump per driver at most; older ones are removed at the next start."""
        return self.folder / "heap_dumps"

    def out_of_memory(self, since: float, where: str) -> OutOfMemoryFault | None:
        """The error, if the JVM has left a heap dump after `since` (epoch seconds).

        A JVM that ends for want of memory takes its word with it: all that Python sees is a
        connection that broke.
        """
        dumps = [d for d in self.heap_dumps.glob("*.hprof") if d.stat().st_mtime >= since]
        if not dumps:
            return None
        return OutOfMemoryFault(
            f"the driver's JVM ran out of memory; its heap dump: {dumps[-1]}",
            where=where,
            remedy="raise spark.driver_memory, or lower source.max_offsets_per_trigger; the stream "
            "is started again by itself",
        )

    def prepare(self) -> None:
        """Make the folders, readable by this user only: a heap dump holds secrets."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.heap_dumps.mkdir(mode=0o700, exist_ok=True)
        dumps = sorted(self.heap_dumps.glob("*.hprof"), key=lambda p: p.stat().st_mtime)
        for old in dumps[:-1]:
            old.unlink()

    def jvm_options(self) -> tuple[str, ...]:
        """Options of the driver's JVM."""
        log4j = resources.files("ingest_platform.spark") / "log4j2.properties"
        return (
            f"-Xlog:gc*,safepoint:file={self.gc_log}:time,uptime,level,tags:filecount=5,filesize=10m",
            "-XX:+HeapDumpOnOutOfMemoryError",
            f"-XX:HeapDumpPath={self.heap_dumps}",
            f"-Dlog4j2.configurationFile=file:{log4j}",
            f"-Dingest.spark.log={self.spark_log}",
            # Py4J may only call what is opened; these hold the beans of heap and collectors.
            "--add-opens=java.management/sun.management=ALL-UNNAMED",
            "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
        )


class JsonFormatter(logging.Formatter):
    """One JSON object per line, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        """Format time (epoch seconds), level, logger, message and traceback."""
        body = {
            "time": record.created,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            body["traceback"] = self.formatException(record.exc_info)
        return json.dumps(body)


def set_up_logging(*, as_json: bool, debug: bool) -> None:
    """Log to stderr, which the launcher turns into a file."""
    handler = logging.StreamHandler(sys.stderr)
    line = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
    handler.setFormatter(JsonFormatter() if as_json else logging.Formatter(line))
    logging.basicConfig(
        level=logging.DEBUG if debug else logging.INFO, handlers=[handler], force=True
    )
    for noisy in ("botocore", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Logs each exception of `foreachBatch` with both languages' traces; the driver says it better.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
