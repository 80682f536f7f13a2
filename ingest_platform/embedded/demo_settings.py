"""What a demo is to be, and the environment of its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ingest_platform.embedded.leftovers import VARIABLE
from ingest_platform.embedded.services import Services, without_foreign
from ingest_platform.spec import StreamSpec

# A visitor wants to see something move: the defaults are for days, a demo lasts minutes. In 300 s
# there is a compaction with work to do; files that it has removed are vacuumed after an hour, the
# shortest time that a reader may count on.
_PACE = {
    "INGEST_REPORT_EVERY": "30 seconds",
    "INGEST_COMPACT_EVERY": "1 minute",
    "INGEST_COMPACT_HOT_FILES": "20",
    "INGEST_VACUUM_EVERY": "2 minutes",
    "INGEST_KEEP_REMOVED": "interval 1 hour",
}


@dataclass(frozen=True)
class Settings:
    """What a demo is to be.

    Attributes:
        folder: Absolute; holds all data, logs and settings.
        project: The checkout.
        specs: The deployment's streams; the first one gets the producer's clicks.
        rate: Records per second.
        ui_port: Of Dagster's web server; 3000 or a free one if not given.
        kafka_port: A free one if not given.
        s3_port: A free one if not given.
    """

    folder: Path
    project: Path
    specs: tuple[StreamSpec, ...]
    rate: float
    ui_port: int | None = None
    kafka_port: int | None = None
    s3_port: int | None = None

    @property
    def logs(self) -> Path:
        """Folder of all logs that are not the servers' own."""
        return self.folder / "logs"

    @property
    def dagster_home(self) -> Path:
        """DAGSTER_HOME."""
        return self.folder / "dagster"

    @property
    def receipts(self) -> Path:
        """Where the producer leaves its counts."""
        return self.folder / "producer.json"

    @property
    def shell_variables(self) -> Path:
        """A file to source in another terminal."""
        return self.folder / "env.sh"


def platform_variables(services: Services, settings_folder: Path) -> dict[str, str]:
    """What points CLI, drivers and Dagster at the embedded services and their folder."""
    return {
        **services.environment(),
        "INGEST_LOG_DIR": str(settings_folder / "logs"),
        "DAGSTER_HOME": str(settings_folder / "dagster"),
    }


def pace(environ: Mapping[str, str]) -> dict[str, str]:
    """How often things happen in the demo's stream, by the variables that its spec names."""
    return {name: environ.get(name, value) for name, value in _PACE.items()}


def demo_environment(
    environ: Mapping[str, str], services: Services, settings: Settings
) -> dict[str, str]:
    """The environment of the producer, of `dagster dev` and of what that starts."""
    return {
        **without_foreign(environ),
        **platform_variables(services, settings.folder),
        **pace(environ),
        VARIABLE: str(settings.folder),
    }


def write_shell_variables(path: Path, variables: Mapping[str, str]) -> None:
    """Write a file of exports, for `source FILE` in another terminal."""
    lines = [f"export {name}='{value}'\n" for name, value in variables.items()]
    # What would win over the variables above, or add a login that these services do not know.
    lines.append("unset AWS_ENDPOINT_URL_S3 AWS_SESSION_TOKEN AWS_PROFILE\n")
    lines.append("unset KAFKA_SECURITY_PROTOCOL KAFKA_SASL_MECHANISM\n")
    path.write_text("".join(lines), encoding="utf-8")
