"""Spark sessions of what works on tables beside their streams: maintenance, repair, replay."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from pyspark.sql import SparkSession

from ingest_platform.drivers.diagnostics import Diagnostics
from ingest_platform.drivers.failures import classify
from ingest_platform.errors import IngestError
from ingest_platform.spark.session import open_session
from ingest_platform.spec import SparkSpec, StorageEnvironment, StreamSpec

log = logging.getLogger(__name__)


@contextmanager
def session_for(task: str, spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session for one task at a stream's tables, `repair` or `replay`.

    Raises:
        IngestError: Whatever went wrong in the block, or that Spark does not start.
    """
    with open_session(
        spec.spark,
        StorageEnvironment.from_env(environ),
        app_name=f"ingest-{task}-{spec.name}",
        environ=environ,
        on_s3=spec.on_s3,
    ) as spark:
        try:
            yield spark
        except IngestError:
            raise
        except Exception as error:
            raise classify(error, where=f"{task} of {spec.name}") from error


class SessionOnDemand:
    """Starts a JVM at the first `get`, and ends it with the block: most maintenance needs none."""

    def __init__(
        self,
        specs: Sequence[StreamSpec],
        environ: Mapping[str, str],
        log_dir: Path,
        app_name: str,
        *,
        jvm_options: Sequence[str] = (),
    ) -> None:
        """`specs` are the tables to be served; the first one's `spark` section counts."""
        self._specs, self._environ, self._log_dir, self._name = specs, environ, log_dir, app_name
        self._jvm_options = jvm_options
        self._stack = ExitStack()
        self._session: SparkSession | None = None

    def get(self) -> SparkSession:
        """The session.

        Raises:
            JavaNotFoundError, JarLockError, EnvironmentFault: Spark does not start.
        """
        if self._session is None:
            log.info("starting Spark")
            diagnostics = Diagnostics(self._log_dir)
            diagnostics.prepare()
            session = open_session(
                self._spark(),
                StorageEnvironment.from_env(self._environ),
                app_name=self._name,
                environ=self._environ,
                on_s3=any(spec.on_s3 for spec in self._specs),
                jvm_options=(*diagnostics.jvm_options(), *self._jvm_options),
            )
            self._session = self._stack.enter_context(session)
        return self._session

    def _spark(self) -> SparkSpec:
        memory = max((s.maintenance.driver_memory for s in self._specs), key=_megabytes)
        return self._specs[0].spark.model_copy(update={"driver_memory": memory})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _megabytes(memory: str) -> int:
    return int(memory[:-1]) * (1024 if memory.endswith("g") else 1)
