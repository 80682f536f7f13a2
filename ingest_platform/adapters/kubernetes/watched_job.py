"""A driver's Job that somebody waits for: its exit code, its log, its end."""

from __future__ import annotations

import time
from collections.abc import Callable

from ingest_platform.adapters.kubernetes.cluster import Cluster
from ingest_platform.adapters.kubernetes.launcher import submit, sweep
from ingest_platform.adapters.kubernetes.manifests import DriverJob
from ingest_platform.errors import RetryableFault

POD_IS_GONE = -1  # in place of an exit code

_ALL_LINES = 1_000_000
_POLL_SECONDS = 2.0


class WatchedJob:
    """One Job, from its making to its end."""

    def __init__(self, cluster: Cluster, driver: DriverJob) -> None:
        """Make it, and let it run.

        Raises:
            ServiceStartError, RetryableFault: The cluster refuses, or does not answer.
        """
        self._cluster = cluster
        sweep(cluster, driver.pod.namespace, driver.stream)
        self.runs_at = submit(cluster, driver)

    def wait(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> int | None:
        """The container's exit code; `POD_IS_GONE` without one; None if it takes longer.

        An API server that does not answer for a while is waited for as well.

        Raises:
            ServiceStartError: The cluster refuses to tell.
        """
        deadline = clock() + seconds
        while clock() < deadline:
            try:
                code = self._exit_code()
            except RetryableFault:
                code = None
            if code is not None:
                return code
            sleep(_POLL_SECONDS)
        return None

    def log(self) -> str:
        """All that the pod printed; empty once the pod is gone.

        Raises:
            ServiceStartError, RetryableFault: As `wait`.
        """
        pod = self._cluster.pod(self.runs_at.namespace, self.runs_at.job)
        if pod is None:
            return ""
        return self._cluster.log(self.runs_at.namespace, pod.metadata.name, _ALL_LINES)

    def end(self) -> None:
        """Delete pod and Job: SIGTERM first, and SIGKILL when the pod's grace period is over.

        Raises:
            ServiceStartError, RetryableFault: As `wait`.
        """
        namespace, job = self.runs_at.namespace, self.runs_at.job
        pod = self._cluster.pod(namespace, job)
        if pod is not None:
            self._cluster.delete_pod(namespace, pod.metadata.name)
        self._cluster.delete_job(namespace, job)

    def _exit_code(self) -> int | None:
        job = self._cluster.job(self.runs_at.namespace, self.runs_at.job)
        if job is None:
            return POD_IS_GONE
        pod = self._cluster.pod(self.runs_at.namespace, self.runs_at.job)
        for container in pod.status.container_statuses or [] if pod else []:
            if container.state and container.state.terminated:
                return int(container.state.terminated.exit_code)
        ended = [c for c in job.status.conditions or [] if c.status == "True"]
        return POD_IS_GONE if any(c.type in {"Complete", "Failed"} for c in ended) else None
