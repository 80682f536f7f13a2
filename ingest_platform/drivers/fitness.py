"""What a driver refuses of its own spec and machine before it starts, and what it only warns of.

These are the findings of `ingest-platform check` that need neither broker nor storage: those a
driver meets by itself, and refuses in `preparation`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping

from ingest_platform.errors import DataProblem, EnvironmentFault, IngestError, UserError
from ingest_platform.maintain.preflight.executors import check_executors
from ingest_platform.maintain.preflight.findings import Finding
from ingest_platform.maintain.preflight.kinds import Level
from ingest_platform.maintain.preflight.log_store import check_log_store
from ingest_platform.maintain.preflight.paths import check_paths
from ingest_platform.maintain.preflight.secrets import check_secrets
from ingest_platform.maintain.preflight.user_jars import check_user_jars
from ingest_platform.spec import StreamSpec

log = logging.getLogger(__name__)

_ERRORS: dict[int, type[IngestError]] = {
    error.exit_code: error for error in (UserError, EnvironmentFault, DataProblem)
}


def refuse_unfit(spec: StreamSpec, environ: Mapping[str, str]) -> None:
    """Log each warning, and raise the first error.

    Raises:
        UserError, EnvironmentFault: The stream would fail later, or write where it must not.
    """
    for finding in _findings(spec, environ):
        if finding.level is Level.WARNING:
            log.warning("%s: %s; %s", finding.what, finding.why, finding.remedy)
        elif finding.level is Level.ERROR:
            raise _ERRORS[finding.exit_code](
                f"{finding.what}: {finding.why}",
                where=f"stream {spec.name}, {finding.group}",
                remedy=finding.remedy,
            )


def _findings(spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield from check_log_store(spec, environ)
    yield from check_paths(spec)
    yield from check_secrets(spec, environ)
    yield from check_user_jars(spec, environ)
    yield from check_executors(spec, environ, sys.version_info[:2])
