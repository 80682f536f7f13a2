"""The objects of one driver, as dictionaries: Job, ConfigMap of its spec, headless service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingest_platform.adapters.kubernetes.settings import PodSettings

SPEC_FOLDER = "/etc/ingest"
LOG_FOLDER = "/var/log/ingest"
LAST_WORDS = "/dev/termination-log"  # what it holds at the end, the pod's status says

STREAM_LABEL = "ingest-platform/stream"
JOB_LABEL = "batch.kubernetes.io/job-name"
_GRACE_SECONDS = 45  # a driver obeys SIGTERM within 30
_UI_PORT = 4040

Manifest = dict[str, Any]


@dataclass(frozen=True)
class DriverJob:
    """One driver to be.

    Attributes:
        stream: The stream's name.
        suffix: Tells this launch from all others: eight hexadecimal digits.
        files: Content by relative path: the spec, and a JSON schema that it names.
        command: Called with `arguments`.
        arguments: The spec's path, and what else the driver takes.
        pod: Image, resources, secrets.
        deadline: Seconds after which the cluster ends it, whoever still watches; None for never.
    """

    stream: str
    suffix: str
    files: Mapping[str, str]
    command: Sequence[str]
    arguments: Sequence[str]
    pod: PodSettings
    deadline: int | None = None

    @property
    def name(self) -> str:
        """Of Job, ConfigMap and service; short enough for the names that Kubernetes derives."""
        return f"ingest-{self.stream[:38].rstrip('_').replace('_', '-')}-{self.suffix}"


def job(driver: DriverJob) -> Manifest:
    """The Job: one pod, never restarted, since the supervisor decides about the next driver.

    Made suspended: what its pod needs is made after it, to be owned by it, and a launch that is
    broken off in between leaves nothing that runs.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(driver),
        "spec": {
            "suspend": True,
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "ttlSecondsAfterFinished": driver.pod.keep_finished,
            **({"activeDeadlineSeconds": driver.deadline} if driver.deadline else {}),
            "template": {
                "metadata": {
                    "labels": _labels(driver),
                    "annotations": {
                        # An eviction for a node's sake would cut off a batch for nothing.
                        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                        **driver.pod.annotations,
                    },
                },
                "spec": _pod(driver),
            },
        },
    }


def config_map(driver: DriverJob, owner: Manifest) -> Manifest:
    """The spec as the driver reads it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**_metadata(driver), "ownerReferences": [owner]},
        "immutable": True,
        "data": {_key(path): text for path, text in driver.files.items()},
    }


def service(driver: DriverJob, owner: Manifest) -> Manifest:
    """The name under which executors find the driver; headless, since it has one pod."""
    ports = {
        "driver": driver.pod.driver_port,
        "blockmanager": driver.pod.block_manager_port,
        "spark-ui": _UI_PORT,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**_metadata(driver), "ownerReferences": [owner]},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {JOB_LABEL: driver.name},
            "ports": [
                {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
                for name, port in ports.items()
            ],
        },
    }


def owner_reference(name: str, uid: str) -> Manifest:
    """What makes the cluster remove an object together with its Job."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _key(path: str) -> str:
    """A ConfigMap's keys hold no slash."""
    return path.replace("/", "__")


def _metadata(driver: DriverJob) -> Manifest:
    return {
        "name": driver.name,
        "namespace": driver.pod.namespace,
        "labels": _labels(driver),
        **({"annotations": dict(driver.pod.annotations)} if driver.pod.annotations else {}),
    }


def _labels(driver: DriverJob) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "ingest-platform",
        "app.kubernetes.io/component": "driver",
        "app.kubernetes.io/managed-by": "ingest-platform",
        STREAM_LABEL: driver.stream,
        **driver.pod.labels,
    }


def _pod(driver: DriverJob) -> Manifest:
    pod = driver.pod
    optional = {
        "nodeSelector": dict(pod.node_selector),
        "tolerations": [dict(t) for t in pod.tolerations],
        "imagePullSecrets": [{"name": name} for name in pod.image_pull_secrets],
        "priorityClassName": pod.priority_class,
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": pod.service_account,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(driver)],
        "volumes": [
            {
                "name": "spec",
                "configMap": {
                    "name": driver.name,
                    "items": [{"key": _key(path), "path": path} for path in driver.files],
                },
            },
            {"name": "logs", "emptyDir": {"sizeLimit": pod.ephemeral_storage}},
            {"name": "scratch", "emptyDir": {"sizeLimit": pod.ephemeral_storage}},
        ],
        **{key: value for key, value in optional.items() if value},
    }


def _container(driver: DriverJob) -> Manifest:
    pod = driver.pod
    return {
        "name": "driver",
        "image": pod.image,
        "command": list(driver.command),
        "args": list(driver.arguments),
        "env": _environment(driver),
        "envFrom": [
            *({"configMapRef": {"name": name}} for name in pod.config_maps),
            *({"secretRef": {"name": name}} for name in pod.secrets),
        ],
        "ports": [
            {"name": "driver", "containerPort": pod.driver_port},
            {"name": "blockmanager", "containerPort": pod.block_manager_port},
            {"name": "spark-ui", "containerPort": _UI_PORT},
        ],
        "resources": {
            "requests": {"cpu": pod.cpu, "memory": pod.memory},
            # A limit on memory only: a throttled JVM looks like a hung one.
            "limits": {"memory": pod.memory},
        },
        "volumeMounts": [
            {"name": "spec", "mountPath": SPEC_FOLDER, "readOnly": True},
            {"name": "logs", "mountPath": LOG_FOLDER},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108  (a volume of the pod's own)
        ],
        "terminationMessagePath": LAST_WORDS,
        "terminationMessagePolicy": "File",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _environment(driver: DriverJob) -> list[Manifest]:
    pod = driver.pod
    plain = {
        **pod.environment,
        "INGEST_JOB": driver.name,
        "INGEST_LOG_DIR": LOG_FOLDER,
        "INGEST_ERROR_FILE": LAST_WORDS,
        "INGEST_DRIVER_HOST": f"{driver.name}.{pod.namespace}.svc",
        "INGEST_DRIVER_PORT": str(pod.driver_port),
        "INGEST_BLOCK_MANAGER_PORT": str(pod.block_manager_port),
        "INGEST_IMAGE": pod.image,
        "INGEST_NAMESPACE": pod.namespace,
        "INGEST_SERVICE_ACCOUNT": pod.service_account,
    }
    fields = {"INGEST_POD": "metadata.name", "INGEST_NODE": "spec.nodeName"}
    return [
        *({"name": name, "value": value} for name, value in plain.items()),
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
        ),
    ]
