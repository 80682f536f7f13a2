"""One stream's definitions on a real instance, with real stores on a local path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import psutil
import pytest

from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.stores import Stores
from ingest_platform.components.kafka_delta_table import stream_definitions
from ingest_platform.components.resources import LauncherResource, S3Resource
from ingest_platform.model.status import RunsAt
from ingest_platform.spec import StorageEnvironment, StreamSpec, load_spec
from ingest_platform_tests import stand_in_driver
from ingest_platform_tests.dagster_home import make_instance

# Dagster itself calls what it marks so.
QUIET = pytest.mark.filterwarnings(
    "ignore::dagster.BetaWarning",
    "ignore::dagster.PreviewWarning",
    "ignore:InitResourceContext.dagster_run:DeprecationWarning",
    "ignore::pydantic.PydanticDeprecatedSince20",
)

YAML = """\
type: ingest_platform.KafkaDeltaTable
attributes:
  name: clicks
  source:
    topic: clicks
  decode:
    schema: "id BIGINT"
  table:
    path: {lake}/clicks
  report_every: 5 minutes
"""


def end(runs_at: RunsAt) -> None:
    """Kill a driver and wait until it is gone; it is no child of this process."""
    LocalLauncher().kill(runs_at)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(runs_at.pid).wait(timeout=20)


@dataclass
class Deployment:
    """A stream as Dagster sees it."""

    spec: StreamSpec
    defs: dg.Definitions
    instance: dg.DagsterInstance
    stores: Stores
    resources: dict[str, object]
    cursor: str | None = field(default=None)

    def tick(self) -> dg.SensorResult:
        """Evaluate the sensor as the daemon would, and keep its cursor."""
        sensor = self.defs.resolve_sensor_def("clicks_supervisor")
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=self.cursor,
            resources=self.resources,
            definitions=self.defs,
        )
        result = sensor(context)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        return result

    def run(self, request: dg.RunRequest, **environ: str) -> dg.ExecuteInProcessResult:
        """Execute a requested run as a run worker would, with the request's tags."""
        job = self.defs.resolve_job_def(request.job_name or "clicks_start")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            return job.execute_in_process(
                instance=self.instance,
                tags={**request.tags, "dagster/run_key": request.run_key or ""},
                raise_on_error=False,
            )


@pytest.fixture
def instance(tmp_path) -> Iterator[dg.DagsterInstance]:
    """A real instance, on SQLite, with the repository's own settings."""
    with make_instance(tmp_path / "dagster") as made:
        yield made


@pytest.fixture
def deployment(tmp_path, instance) -> Iterator[Deployment]:
    """The stream `clicks`, its driver the stand-in; no driver is left behind."""
    path = tmp_path / "defs.yaml"
    path.write_text(YAML.format(lake=tmp_path / "lake"))
    spec = load_spec(path, os.environ)
    resources = {
        "s3": S3Resource(),
        "launcher": LauncherResource(
            command=list(stand_in_driver.COMMAND), log_dir=str(tmp_path / "logs"), healthy_within=30
        ),
    }
    defs = dg.Definitions.merge(stream_definitions(spec, path), dg.Definitions(resources=resources))
    stores = Stores.of(spec, StorageEnvironment())
    yield Deployment(spec, defs, instance, stores, resources)
    status = stores.status.read("clicks")
    if status and status.runs_at.pid != os.getpid():
        end(status.runs_at)


@pytest.fixture
def project(tmp_path) -> Path:
    """A user's own project, with one stream declared by the platform's component."""
    (tmp_path / "dg.toml").write_text(
        'directory_type = "project"\n[project]\nroot_module = "shop"\n'
        "[cli.telemetry]\nenabled = false\n"
        '[cli]\nsuppress_warnings = ["project_and_activated_venv_mismatch"]\n'
    )
    folder = tmp_path / "shop" / "defs" / "clicks"
    folder.mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "defs" / "__init__.py").touch()
    (tmp_path / "shop" / "definitions.py").write_text(
        "import os\nfrom pathlib import Path\nimport dagster as dg\n"
        "from ingest_platform.components.resources import default_resources\n"
        "@dg.definitions\ndef defs():\n"
        "    found = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)\n"
        "    return dg.Definitions.merge(\n"
        "        found, dg.Definitions(resources=default_resources(os.environ)))\n"
    )
    (folder / "defs.yaml").write_text(YAML.format(lake="/lake"))
    return tmp_path
