"""A `Launcher` whose drivers are Jobs of a Kubernetes cluster, in Spark's client mode."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ingest_platform.adapters.kubernetes import manifests
from ingest_platform.adapters.kubernetes.cluster import Cluster
from ingest_platform.adapters.kubernetes.manifests import DriverJob
from ingest_platform.adapters.kubernetes.settings import PodSettings
from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.termination import parse_last_words
from ingest_platform.errors import RetryableFault, SpecError
from ingest_platform.model.status import ErrorReport, RunsAt

KIND = "kubernetes"
COMMAND = ("tini", "--", "python", "-m", "ingest_platform.drivers.stream")
_MAX_FILES_BYTES = 1_000_000  # a ConfigMap holds 1 MiB
# The image has no pgrep; /proc has.
_QUIT_JVM = 'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = java ] && kill -3 ${p#/proc/}; done'


class KubernetesLauncher:
    """Launches into one namespace; finds any driver again by the name of its Job."""

    def __init__(
        self,
        pod: PodSettings,
        cluster: Callable[[], Cluster],
        *,
        files: Callable[[Path], dict[str, str]],
        command: Sequence[str] = COMMAND,
    ) -> None:
        """Bind the launcher; no request is made yet.

        Args:
            pod: What drivers run in.
            cluster: Connects, when the first request needs it.
            files: What the spec at a path consists of, by file name.
            command: What the image runs.
        """
        self._pod, self._connect, self._files = pod, cluster, files
        self._command = tuple(command)
        self._cluster: Cluster | None = None

    def launch(self, launch: Launch) -> RunsAt:
        """Make the Job, what its pod needs, and let it run.

        The launcher's own environment is not passed on: it may hold secrets, which a pod gets by
        reference.

        Raises:
            SpecError: The spec's files are too large.
            ServiceStartError, RetryableFault: The cluster refuses, or does not answer.
        """
        driver = DriverJob(
            stream=launch.name,
            suffix=uuid.uuid4().hex[:8],
            files=self._files(launch.spec_path),
            command=self._command,
            arguments=(
                f"{manifests.SPEC_FOLDER}/{launch.spec_path.name}",
                *launch.arguments,
            ),
            pod=self._pod,
        )
        refuse_large(driver.files, str(launch.spec_path))
        sweep(self._there, self._pod.namespace, launch.name)
        return submit(self._there, driver)

    def alive(self, runs_at: RunsAt) -> bool | None:
        """By the Job's conditions and its pod; None for another kind, and while nobody answers."""
        if not self._mine(runs_at):
            return None
        try:
            job = self._there.job(runs_at.namespace, runs_at.job)
            if job is None or _over(job):
                return False
            pod = self._there.pod(runs_at.namespace, runs_at.job)
        except RetryableFault:
            return None
        return pod is None or pod.status.phase not in {"Failed", "Succeeded"}

    def drain(self, runs_at: RunsAt) -> bool:
        """SIGTERM, by deleting the pod with its grace period."""
        pod = self._pod_of(runs_at)
        if pod is None or pod.status.phase in {"Failed", "Succeeded"}:
            return False
        return self._there.delete_pod(runs_at.namespace, pod.metadata.name)

    def kill(self, runs_at: RunsAt) -> bool:
        """Delete Job and pod at once; what they own goes with them."""
        if not self._mine(runs_at):
            return False
        was = self.alive(runs_at) is True
        pod = self._there.pod(runs_at.namespace, runs_at.job)
        if pod is not None:
            self._there.delete_pod(runs_at.namespace, pod.metadata.name, grace_seconds=0)
        self._there.delete_job(runs_at.namespace, runs_at.job)
        return was

    def dump_threads(self, runs_at: RunsAt) -> bool:
        """SIGQUIT to the JVM, by a shell in the container."""
        pod = self._pod_of(runs_at)
        if pod is None or pod.status.phase != "Running":
            return False
        command = ["sh", "-c", _QUIT_JVM]
        return self._there.execute(runs_at.namespace, pod.metadata.name, command)

    def last_words(self, runs_at: RunsAt) -> ErrorReport | None:
        """From the container's termination message."""
        pod = self._pod_of(runs_at)
        return parse_last_words(_termination_message(pod)) if pod else None

    def log_tail(self, runs_at: RunsAt, lines: int = 40) -> str:
        """The pod's log; before it has one, why its pod does not run."""
        pod = self._pod_of(runs_at)
        if pod is None:
            return ""
        text = self._there.log(runs_at.namespace, pod.metadata.name, lines)
        return text or _waiting_for(pod)

    @property
    def _there(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._connect()
        return self._cluster

    def _mine(self, runs_at: RunsAt) -> bool:
        return runs_at.launcher == KIND and bool(runs_at.job)

    def _pod_of(self, runs_at: RunsAt) -> Any | None:
        return self._there.pod(runs_at.namespace, runs_at.job) if self._mine(runs_at) else None


def sweep(cluster: Cluster, namespace: str, stream: str) -> None:
    """Remove what a launch that was broken off has left: a Job that never ran."""
    for job in cluster.jobs(namespace, f"{manifests.STREAM_LABEL}={stream}"):
        if job.spec.suspend:
            cluster.delete_job(namespace, job.metadata.name)


def submit(cluster: Cluster, driver: DriverJob) -> RunsAt:
    """Make the Job and what its pod needs, and let it run.

    Raises:
        ServiceStartError, RetryableFault: The cluster refuses, or does not answer.
    """
    namespace = driver.pod.namespace
    uid = cluster.create_job(manifests.job(driver))
    owner = manifests.owner_reference(driver.name, uid)
    cluster.create_config_map(manifests.config_map(driver, owner))
    cluster.create_service(manifests.service(driver, owner))
    cluster.resume_job(namespace, driver.name)
    return RunsAt(
        launcher=KIND,
        job=driver.name,
        namespace=namespace,
        log=f"kubectl logs -n {namespace} job/{driver.name}",
    )


def refuse_large(files: Mapping[str, str], where: str) -> None:
    """Refuse what no ConfigMap holds, before anything is made.

    Raises:
        SpecError: The specs and their schemas are too large.
    """
    size = sum(len(text.encode()) for text in files.values())
    if size > _MAX_FILES_BYTES:
        raise SpecError(
            f"the spec and its schema have {size} bytes; a ConfigMap holds {_MAX_FILES_BYTES}",
            where=where,
            remedy="put each stream into a file of its own, or shorten the schema; for a "
            "maintenance run, put its tables into several lanes",
        )


def _over(job: Any) -> bool:
    ended = {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"}
    conditions = job.status.conditions or []
    return any(c.type in ended and c.status == "True" for c in conditions)


def _termination_message(pod: Any) -> str:
    for container in pod.status.container_statuses or []:
        if container.state and container.state.terminated:
            return container.state.terminated.message or ""
    return ""


def _waiting_for(pod: Any) -> str:
    reasons = [
        f"{c.state.waiting.reason}: {c.state.waiting.message or ''}"
        for c in pod.status.container_statuses or []
        if c.state and c.state.waiting
    ]
    unscheduled = [
        f"{c.reason}: {c.message}"
        for c in pod.status.conditions or []
        if c.type == "PodScheduled" and c.status == "False"
    ]
    return "\n".join((*unscheduled, *reasons))
