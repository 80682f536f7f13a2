"""What a driver's pod needs, from the stream's spec and the deployment's environment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ingest_platform.errors import SpecError
from ingest_platform.spec import StreamSpec
from ingest_platform.spec.kubernetes import KubernetesSpec

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_OVERHEAD_MIB = 1024  # Python, and what a JVM takes beside its heap


@dataclass(frozen=True)
class PodSettings:
    """As `KubernetesSpec`, with everything decided; `memory` in Kubernetes' notation."""

    image: str
    namespace: str
    service_account: str
    cpu: str
    memory: str
    ephemeral_storage: str = "10Gi"
    secrets: tuple[str, ...] = ()
    config_maps: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    image_pull_secrets: tuple[str, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerations: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    priority_class: str | None = None
    driver_port: int = 7078
    block_manager_port: int = 7079
    keep_finished: int = 86_400


def pod_settings(spec: StreamSpec, environ: Mapping[str, str]) -> PodSettings:
    """Decide: the spec's word, then the environment's.

    Raises:
        SpecError: No image is named.
    """
    said = spec.kubernetes or KubernetesSpec.model_validate({})
    image = said.image or environ.get("INGEST_IMAGE")
    if not image:
        raise SpecError(
            f"the driver of {spec.name} is to run on Kubernetes, but no image is named",
            where="kubernetes.image, or INGEST_IMAGE",
            remedy="name the image that deploy/Dockerfile builds",
        )
    account = said.service_account or environ.get("INGEST_SERVICE_ACCOUNT") or "default"
    heap = _mebibytes(spec.spark.driver_memory)
    same: dict[str, Any] = said.model_dump(
        exclude={"image", "namespace", "service_account", "memory", "cpu"}
    )
    return PodSettings(
        image=image,
        namespace=said.namespace or environ.get("INGEST_NAMESPACE") or _own_namespace(),
        service_account=account,
        cpu=said.cpu,
        memory=said.memory or f"{heap + _OVERHEAD_MIB}Mi",
        **same,
    )


def maintenance_pod(specs: Sequence[StreamSpec], environ: Mapping[str, str]) -> PodSettings:
    """What the one driver needs that maintains the tables of all these streams.

    As the first one's, with the secrets of all of them, and memory for the largest
    `maintenance.driver_memory`.

    Raises:
        SpecError: No image is named.
    """
    pods = [pod_settings(spec, environ) for spec in specs]
    heap = max(_mebibytes(spec.maintenance.driver_memory) for spec in specs)
    return replace(
        pods[0],
        memory=f"{heap + _OVERHEAD_MIB}Mi",
        secrets=tuple(dict.fromkeys(name for pod in pods for name in pod.secrets)),
        config_maps=tuple(dict.fromkeys(name for pod in pods for name in pod.config_maps)),
    )


def _own_namespace() -> str:
    try:
        return _OWN_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        return "default"


def _mebibytes(heap: str) -> int:
    """Of a JVM's notation, `2g`; the spec's pattern admits m and g only."""
    match = re.fullmatch(r"(\d+)([mg])", heap)
    if match is None:
        raise ValueError(f"{heap!r} is no heap size")
    return int(match[1]) * (1024 if match[2] == "g" else 1)
