"""Where a driver's pod runs and with what: the `kubernetes` section of a stream's spec."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ingest_platform.spec.fields import Frozen

_NAME = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
_QUANTITY = r"^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"
ObjectName = Annotated[str, Field(pattern=_NAME)]
Quantity = Annotated[str, Field(pattern=_QUANTITY)]
_Port = Annotated[int, Field(ge=1024, le=65535)]


class KubernetesSpec(Frozen):
    """Drivers as Jobs of a cluster; what is not set here, the deployment's environment says."""

    image: str | None = Field(
        None, description="Image of driver and executors; default: INGEST_IMAGE."
    )
    namespace: ObjectName | None = Field(
        None, description="Default: INGEST_NAMESPACE, or that of the code location's own pod."
    )
    service_account: ObjectName | None = Field(
        None, description="Of the driver's pod; default: INGEST_SERVICE_ACCOUNT."
    )
    cpu: Quantity = Field("2", description="Cores of the driver's pod: requested, not limited.")
    memory: Quantity | None = Field(
        None, description="Memory of the driver's pod; default: spark.driver_memory and 1 GiB more."
    )
    ephemeral_storage: Quantity = Field("10Gi", description="For logs, spill files, a heap dump.")
    secrets: tuple[ObjectName, ...] = Field(
        (), description="Secrets whose keys become environment variables: KAFKA_*, AWS_*."
    )
    config_maps: tuple[ObjectName, ...] = Field(
        (), description="ConfigMaps whose keys become environment variables."
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Further variables; no secrets, which are refused."
    )
    image_pull_secrets: tuple[ObjectName, ...] = ()
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    priority_class: ObjectName | None = None
    driver_port: _Port = Field(7078, description="Fixed, so that network policies can name it.")
    block_manager_port: _Port = 7079
    keep_finished: int = Field(
        86_400, ge=60, description="Seconds that an ended driver's Job and log are kept."
    )
