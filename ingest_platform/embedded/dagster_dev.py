"""`dagster dev` as a child process, and what its web server says.

Asked over HTTP: this package must not import Dagster.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from ingest_platform.embedded.ports import LOOPBACK
from ingest_platform.embedded.process import (
    ChildProcess,
    NotYetHealthyError,
    spawn,
    wait_until_healthy,
)
from ingest_platform.errors import ServiceStartError, UserError

PORT = 3000
START_SECONDS = 120.0

_LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries {
  name loadStatus locationOrLoadError { ... on PythonError { message } } } } } }"""
_MATERIALIZATIONS = """query($key: [String!]!, $after: String) {
  assetOrError(assetKey: {path: $key}) { ... on Asset {
    assetMaterializations(limit: 1000, afterTimestampMillis: $after) {
      timestamp description
      metadataEntries { label
        ... on IntMetadataEntry { intRepr } ... on FloatMetadataEntry { floatValue } } } } } }"""


@dataclass(frozen=True)
class Materialization:
    """One report of progress, as the UI shows it.

    Attributes:
        at: Epoch seconds.
        description: Its sentence.
        numbers: The numeric metadata, by label.
    """

    at: float
    description: str
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class DagsterDev:
    """A running `dagster dev`.

    Attributes:
        url: Of the UI.
        child: The process; its log is what it printed.
    """

    url: str
    child: ChildProcess

    def materializations(self, asset: str, since: float) -> Sequence[Materialization]:
        """What was reported of an asset after `since` (epoch seconds), oldest first.

        Raises:
            httpx.HTTPError: The web server does not answer.
        """
        after = {"key": [asset], "after": str(int(since * 1000))}
        answer = _ask(self.url, _MATERIALIZATIONS, after)["assetOrError"]
        found = [_materialization(raw) for raw in answer.get("assetMaterializations", ())]
        return sorted(found, key=lambda m: m.at)

    def stop(self, grace: float) -> None:
        """End it: its own way first, which ends web server, daemon and code server in order.

        Args:
            grace: In seconds; after it everything of its process group is killed.
        """
        if self.child.is_running():
            # To the parent only: as a signal to the whole group, all of them would complain that
            # the others are gone.
            with suppress(ProcessLookupError):
                self.child.popen.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.child.popen.wait(grace)
        self.child.stop(grace=1)


def start_dagster(folder: Path, *, project: Path, env: Mapping[str, str], port: int) -> DagsterDev:
    """Start it on loopback and wait until the code location is loaded, about 10 s.

    Args:
        folder: DAGSTER_HOME; gets the project's `dagster.yaml`.
        project: The checkout, with `workspace.yaml`.
        env: The whole environment.
        port: A free one.

    Raises:
        ServiceStartError: It ended, did not become healthy in time, or the definitions do not load.
    """
    prepare_home(folder, project)
    url = f"http://{LOOPBACK}:{port}"
    command = [sys.executable, "-m", "dagster", "dev", "--host", LOOPBACK, "--port", str(port)]
    command += ["--workspace", str(project / "workspace.yaml")]
    child = spawn(
        command,
        name="dagster dev",
        log=folder.parent / "logs" / "dagster.log",
        env={**env, "DAGSTER_HOME": str(folder)},
    )
    server = DagsterDev(url, child)
    try:
        wait_until_healthy(child, lambda: _check(url), where=url, deadline=START_SECONDS)
        _wait_until_loaded(server)
    except BaseException:
        server.stop(grace=5)
        raise
    return server


def prepare_home(folder: Path, project: Path) -> None:
    """Make DAGSTER_HOME, with the settings of the checkout.

    Raises:
        UserError: The package does not run from a checkout.
    """
    if not (project / "workspace.yaml").is_file() or not (project / "dagster.yaml").is_file():
        raise UserError(
            "workspace.yaml and dagster.yaml are not beside the package",
            where=str(project),
            remedy="run this from a checkout of the repository, not from an installed package",
        )
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(project / "dagster.yaml", folder / "dagster.yaml")


def _check(url: str) -> None:
    try:
        httpx.get(f"{url}/server_info", timeout=2, trust_env=False).raise_for_status()
    except httpx.HTTPError as e:
        raise NotYetHealthyError(str(e) or type(e).__name__) from e


def _wait_until_loaded(server: DagsterDev) -> None:
    deadline = time.monotonic() + START_SECONDS
    entries: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        with suppress(httpx.HTTPError):
            entries = _ask(server.url, _LOCATIONS, {})["workspaceOrError"]["locationEntries"]
        for entry in entries:
            message = (entry["locationOrLoadError"] or {}).get("message")
            if message:
                raise ServiceStartError(
                    f"Dagster cannot load the definitions: {message.strip()}",
                    where=f"{entry['name']}, log {server.child.log}",
                    remedy="mend what it says; `dg check defs` checks without starting anything",
                )
        if entries and all(entry["loadStatus"] == "LOADED" for entry in entries):
            return
        time.sleep(0.2)
    raise ServiceStartError(
        f"Dagster did not load the definitions within {START_SECONDS:g} s",
        where=f"{server.url}, log {server.child.log}",
        remedy="read the log; on a busy machine, try again",
    )


def _ask(url: str, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    body = {"query": query, "variables": dict(variables)}
    # Proxies of the environment cannot reach this machine's loopback.
    response = httpx.post(f"{url}/graphql", json=body, timeout=10, trust_env=False)
    response.raise_for_status()
    return response.json()["data"]


def _materialization(raw: Mapping[str, Any]) -> Materialization:
    numbers: dict[str, float] = {}
    for entry in raw["metadataEntries"]:
        text = entry.get("intRepr") or entry.get("floatValue")
        if text is not None:
            numbers[entry["label"]] = float(text)
    return Materialization(float(raw["timestamp"]) / 1000, raw["description"] or "", numbers)
