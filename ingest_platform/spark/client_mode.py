"""Settings of a driver that is a pod itself and has its executors in the same cluster.

Client mode: the driver's address must be one that executors can resolve (a headless service) and
ports that a network policy can name; executors are owned by the driver's pod and end with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ingest_platform.spec import SparkSpec


def client_mode_conf(spark: SparkSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """What the launcher's variables say, in Spark's names; nothing outside of Kubernetes."""
    host, pod = environ.get("INGEST_DRIVER_HOST"), environ.get("INGEST_POD")
    if not host or not pod or not spark.master.startswith("k8s://"):
        return {}
    account = environ["INGEST_SERVICE_ACCOUNT"]
    return {
        "spark.driver.host": host,
        "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104  (inside of the pod)
        "spark.driver.port": environ["INGEST_DRIVER_PORT"],
        "spark.blockManager.port": environ["INGEST_BLOCK_MANAGER_PORT"],
        "spark.kubernetes.namespace": environ["INGEST_NAMESPACE"],
        "spark.kubernetes.container.image": environ["INGEST_IMAGE"],
        "spark.kubernetes.driver.pod.name": pod,
        "spark.kubernetes.authenticate.serviceAccountName": account,
        "spark.kubernetes.authenticate.executor.serviceAccountName": account,
    }
