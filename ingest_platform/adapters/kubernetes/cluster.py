"""The few requests that a launcher makes of a cluster, and what its refusals mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

from kubernetes import client
from kubernetes import config as kube_config
from kubernetes.client import ApiException
from kubernetes.stream import stream
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from ingest_platform.errors import RetryableFault, ServiceStartError

_SECONDS = (3.05, 15)  # to connect, to answer: a sensor's tick has a minute
_T = TypeVar("_T")


@lru_cache(maxsize=1)
def connect() -> Cluster:
    """The cluster that this process is a pod of, else the one that kubectl would talk to.

    One per process, so that a sensor's ticks share its connections.

    Raises:
        ServiceStartError: There is neither.
    """
    settings = client.Configuration()
    try:
        kube_config.load_incluster_config(client_configuration=settings)
    except kube_config.ConfigException:
        try:
            kube_config.load_kube_config(client_configuration=settings)
        except kube_config.ConfigException as error:
            raise ServiceStartError(
                f"no Kubernetes cluster is known here: {error}",
                where="service account of this pod, KUBECONFIG, ~/.kube/config",
                remedy="run inside the cluster, or check that `kubectl get jobs` works here",
            ) from error
    return Cluster(settings)


class Cluster:
    """Jobs and what belongs to them. Every method raises as `create_job` does."""

    def __init__(self, settings: client.Configuration) -> None:
        settings.retries = Retry(total=2, backoff_factor=0.2, redirect=0)
        self._where = str(settings.host)
        self._api = client.ApiClient(settings)
        self._core, self._batch = client.CoreV1Api(self._api), client.BatchV1Api(self._api)
        self._settings = settings

    def close(self) -> None:
        """Drop the connections."""
        self._api.rest_client.pool_manager.clear()

    def create_job(self, body: dict[str, Any]) -> str:
        """Create it; its uid.

        Raises:
            RetryableFault: The API server does not answer, or is busy.
            ServiceStartError: It refuses: rights, quota, or a rule of the cluster.
        """
        namespace = body["metadata"]["namespace"]
        job: Any = self._ask(self._batch.create_namespaced_job, namespace, body)
        return str(job.metadata.uid)

    def create_config_map(self, body: dict[str, Any]) -> None:
        """Create it."""
        self._ask(self._core.create_namespaced_config_map, body["metadata"]["namespace"], body)

    def create_service(self, body: dict[str, Any]) -> None:
        """Create it."""
        self._ask(self._core.create_namespaced_service, body["metadata"]["namespace"], body)

    def resume_job(self, namespace: str, name: str) -> None:
        """Let a suspended Job run."""
        self._ask(self._batch.patch_namespaced_job, name, namespace, {"spec": {"suspend": False}})

    def job(self, namespace: str, name: str) -> Any | None:
        """The Job; None when there is none."""
        return self._found(self._batch.read_namespaced_job, name, namespace)

    def jobs(self, namespace: str, selector: str) -> list[Any]:
        """Jobs by label."""
        found = self._ask(self._batch.list_namespaced_job, namespace, label_selector=selector)
        return list(found.items)

    def pod(self, namespace: str, job: str) -> Any | None:
        """The Job's newest pod; None before it has one."""
        selector = f"batch.kubernetes.io/job-name={job}"
        found = self._ask(self._core.list_namespaced_pod, namespace, label_selector=selector)
        pods: list[Any] = sorted(found.items, key=_created)
        return pods[-1] if pods else None

    def delete_pod(self, namespace: str, name: str, grace_seconds: int | None = None) -> bool:
        """Delete it, with its own grace period if none is given; False when there is none."""
        more = {} if grace_seconds is None else {"grace_period_seconds": grace_seconds}
        return self._found(self._core.delete_namespaced_pod, name, namespace, **more) is not None

    def delete_job(self, namespace: str, name: str) -> bool:
        """Delete it, and in the background what it owns; False when there is none."""
        delete = self._batch.delete_namespaced_job
        return self._found(delete, name, namespace, propagation_policy="Background") is not None

    def log(self, namespace: str, pod: str, lines: int) -> str:
        """The end of the pod's log; empty while it has none."""
        read = self._core.read_namespaced_pod_log
        try:
            return str(self._found(read, pod, namespace, tail_lines=lines) or "").rstrip("\n")
        except ServiceStartError:
            return ""  # 400: its container waits

    def execute(self, namespace: str, pod: str, command: list[str]) -> bool:
        """Run a command in the pod's container; False if it could not be run."""
        # `stream` makes the connection of the client that it is given a WebSocket, for all of its
        # requests: never that of other calls.
        core = client.CoreV1Api(client.ApiClient(self._settings))
        try:
            running = stream(
                core.connect_get_namespaced_pod_exec,
                pod,
                namespace,
                command=command,
                stderr=True,
                stdin=False,
                stdout=True,
                tty=False,
                _preload_content=False,
                _request_timeout=_SECONDS[1],
            )
            running.run_forever(timeout=_SECONDS[1])
            running.sock.shutdown()  # `close` leaves the socket open, once the server has ended
        except (ApiException, HTTPError, OSError):
            return False
        return True

    def _ask(self, request: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
        with self._errors():
            return request(*arguments, _request_timeout=_SECONDS, **options)

    def _found(self, request: Callable[..., _T], *arguments: Any, **options: Any) -> _T | None:
        with self._errors():
            try:
                return request(*arguments, _request_timeout=_SECONDS, **options)
            except ApiException as error:
                if error.status == 404:
                    return None
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except HTTPError as error:
            raise RetryableFault(
                f"the Kubernetes API does not answer: {type(error).__name__}",
                where=self._where,
                remedy="check the cluster and the network; it is tried again",
            ) from error
        except ApiException as error:
            raise _refusal(error, self._where) from error


def _created(pod: Any) -> str:
    return str(pod.metadata.creation_timestamp)


def _refusal(error: ApiException, where: str) -> RetryableFault | ServiceStartError:
    said = _message(error)
    if error.status in {429, 500, 502, 503, 504}:
        return RetryableFault(
            f"the Kubernetes API is busy ({error.status}): {said}",
            where=where,
            remedy="nothing to do, if it passes; it is tried again",
        )
    rights = error.status in {401, 403}
    return ServiceStartError(
        f"the Kubernetes API refuses ({error.status}): {said}",
        where=where,
        remedy="grant the service account the role in deploy/kubernetes/role.yaml"
        if rights
        else "mend what it says in the spec's kubernetes section, or the namespace's quota",
    )


def _message(error: ApiException) -> str:
    with suppress(ValueError, TypeError, AttributeError):
        return str(json.loads(error.body or "")["message"])[:500]
    return str(error.reason)
