"""Which launcher a stream's drivers get: the spec's word, then the deployment's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ingest_platform.adapters.launcher import Launcher
from ingest_platform.adapters.local_launcher import DRIVER, LocalLauncher
from ingest_platform.errors import SpecError
from ingest_platform.spec import StreamSpec
from ingest_platform.spec.alert_files import declaring

VARIABLE = "INGEST_LAUNCHER"
_KINDS = ("local", "kubernetes")


def launcher_of(
    spec: StreamSpec, environ: Mapping[str, str], command: Sequence[str] = DRIVER
) -> Launcher:
    """The launcher of a stream; `command` is what a local one calls.

    Raises:
        SpecError: The environment names a kind that does not exist, or no image is named.
    """
    if not on_kubernetes(spec, environ):
        return LocalLauncher(command)
    # The client takes a second to import: only those pay who need it.
    from ingest_platform.adapters.kubernetes.cluster import connect  # noqa: PLC0415
    from ingest_platform.adapters.kubernetes.launcher import KubernetesLauncher  # noqa: PLC0415
    from ingest_platform.adapters.kubernetes.settings import pod_settings  # noqa: PLC0415

    return KubernetesLauncher(
        pod_settings(spec, environ), connect, files=lambda path: spec_files(spec, path, environ)
    )


def on_kubernetes(spec: StreamSpec, environ: Mapping[str, str]) -> bool:
    """Whether the stream's drivers are Jobs of a cluster, or else processes of this host.

    Raises:
        SpecError: The environment names a kind that does not exist.
    """
    kind = spec.launcher or environ.get(VARIABLE) or "local"
    if kind not in _KINDS:
        raise SpecError(
            f"{VARIABLE} is {kind!r}, which is not one of {', '.join(_KINDS)}",
            where="environment",
            remedy=f"export {VARIABLE}=local, or =kubernetes",
        )
    return kind == "kubernetes"


def spec_files(spec: StreamSpec, path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What a driver elsewhere must have: the spec's file, the JSON schema that it names, alerts.

    Content by path relative to the spec's folder.

    Raises:
        SpecError: The schema lies outside of that folder.
    """
    found = {path.name: path.read_text(encoding="utf-8")}
    alerts = declaring(path, environ)
    if alerts and alerts != path.absolute():
        found["alerts/defs.yaml"] = alerts.read_text(encoding="utf-8")
    if spec.decode.schema_file is None:
        return found
    schema, folder = Path(spec.decode.schema_file).resolve(), path.parent.resolve()
    if not schema.is_relative_to(folder):
        raise SpecError(
            f"schema_file {schema} lies outside of the spec's folder, so a pod cannot have it",
            where=str(path),
            remedy="move it beside the spec, or below it",
        )
    return found | {schema.relative_to(folder).as_posix(): schema.read_text(encoding="utf-8")}
