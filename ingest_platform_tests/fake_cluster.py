"""A Kubernetes API server on loopback, with a kubelet: containers are processes of this host.

It knows what a launcher asks for: Jobs, their pods, ConfigMaps, Services, logs, exec. Whatever is
created is held against the published schema of the API first, as a real server does. A pod gets the
manifest's own environment, its mounted files and its termination message, and nothing else.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kubernetes_validate
import uvicorn
from kubernetes import client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from ingest_platform.adapters.kubernetes.cluster import Cluster

VERSION = "1.33"
_MISSING = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}


@dataclass
class Container:
    """One pod of one Job."""

    name: str
    created: str
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def phase(self) -> str:
        code = self.process.poll()
        return "Running" if code is None else "Failed" if code else "Succeeded"

    def end(self, grace: float) -> None:
        """SIGTERM, and SIGKILL to all that is left after `grace` seconds."""
        if grace:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(grace)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class FakeCluster:
    """The state of the cluster; a lock guards it, since a pod's end takes time.

    Attributes:
        folder: Where pods have their files.
        secrets: Content of Secrets by name, for `envFrom`.
        answers: HTTP status that every request gets instead, as from a server in trouble.
        executed: Commands that were run by exec.
    """

    folder: Path
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    answers: int | None = None
    executed: list[list[str]] = field(default_factory=list)
    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    pods: dict[str, Container] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    port: int = 0
    clients: list[Cluster] = field(default_factory=list)

    def connect(self) -> Cluster:
        """The real client."""
        settings = client.Configuration()
        settings.host = f"http://127.0.0.1:{self.port}"
        self.clients.append(Cluster(settings))
        return self.clients[-1]

    def close(self) -> None:
        for made in self.clients:
            made.close()
        for container in self.pods.values():
            container.end(0)

    # --- kubelet ---

    def run(self, job: dict[str, Any]) -> None:
        name, spec = job["metadata"]["name"], job["spec"]["template"]["spec"]
        (driver,) = spec["containers"]
        folder = self.folder / name
        folder.mkdir()
        files = self.objects["configmaps", job["metadata"]["namespace"], name]["data"]
        (mount,) = [v for v in spec["volumes"] if v["name"] == "spec"]
        for item in mount["configMap"]["items"]:
            (folder / item["path"]).parent.mkdir(parents=True, exist_ok=True)
            (folder / item["path"]).write_text(files[item["key"]])
        (place,) = [m["mountPath"] for m in driver["volumeMounts"] if m["name"] == "spec"]
        command = [*driver["command"], *driver["args"]]
        container = f"{name}-{uuid.uuid4().hex[:5]}"
        with (folder / "log").open("wb") as output:
            process = subprocess.Popen(
                [part.replace(place, str(folder)) for part in command],
                env=self._environment(driver, container, folder),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pods[name] = Container(container, _now(), folder, process)

    def _environment(self, driver: dict[str, Any], pod: str, folder: Path) -> dict[str, str]:
        found = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd())}
        for source in driver["envFrom"]:
            if "secretRef" in source:
                found |= self.secrets[source["secretRef"]["name"]]
        for variable in driver["env"]:
            found[variable["name"]] = variable.get("value", pod)
        return found | {"INGEST_ERROR_FILE": str(folder / "termination"), "UP": str(folder / "up")}

    # --- API ---

    def job_status(self, name: str) -> dict[str, Any]:
        container = self.pods.get(name)
        if container is None or container.phase == "Running":
            return {"active": 1} if container else {}
        ended = "Complete" if container.phase == "Succeeded" else "Failed"
        return {"conditions": [{"type": ended, "status": "True"}]}

    def pod_manifest(self, job: str) -> dict[str, Any]:
        container = self.pods[job]
        state: dict[str, Any] = {"running": {}}
        if container.phase != "Running":
            words = container.folder / "termination"
            state = {
                "terminated": {
                    "exitCode": container.process.returncode,
                    "message": words.read_text() if words.exists() else "",
                }
            }
        status = {
            "name": "driver", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
            "state": state,
        }  # fmt: skip
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": container.name, "creationTimestamp": container.created},
            "spec": {"containers": [{"name": "driver"}]},
            "status": {"phase": container.phase, "containerStatuses": [status]},
        }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _failure(code: int, message: str) -> JSONResponse:
    return JSONResponse({**_MISSING, "code": code, "message": message}, status_code=code)


def _application(cluster: FakeCluster) -> Starlette:  # noqa: C901  (one function per request)
    async def create(request: Request) -> Response:
        body, kind = await request.json(), request.path_params["kind"]
        try:
            kubernetes_validate.validate(body, VERSION, strict=True)
        except kubernetes_validate.ValidationError as error:
            return _failure(422, error.message)
        body["metadata"]["uid"] = str(uuid.uuid4())
        key = (kind, request.path_params["namespace"], body["metadata"]["name"])
        with cluster.lock:
            if key in cluster.objects:
                return _failure(409, "already exists")
            cluster.objects[key] = body
        return JSONResponse(body, status_code=201)

    def jobs(request: Request) -> Response:
        label, _, value = request.query_params.get("labelSelector", "=").partition("=")
        found = [
            {**body, "status": cluster.job_status(name)}
            for (kind, _, name), body in cluster.objects.items()
            if kind == "jobs" and body["metadata"]["labels"].get(label) == value
        ]
        return JSONResponse({"kind": "JobList", "apiVersion": "batch/v1", "items": found})

    def job(request: Request) -> Response:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        with cluster.lock:
            body = cluster.objects.get(("jobs", namespace, name))
            if body is None:
                return _failure(404, "no such job")
            if request.method == "DELETE":
                for key in [k for k in cluster.objects if k[1:] == (namespace, name)]:
                    del cluster.objects[key]  # the Job, and what it owns
                cluster.pods.pop(name, None)
            return JSONResponse({**body, "status": cluster.job_status(name)})

    async def patch(request: Request) -> Response:
        key = ("jobs", request.path_params["namespace"], request.path_params["name"])
        changes = await request.json()
        with cluster.lock:
            cluster.objects[key]["spec"] |= changes["spec"]
            cluster.run(cluster.objects[key])
            return JSONResponse(cluster.objects[key])

    def pods(request: Request) -> Response:
        name = request.query_params["labelSelector"].partition("=")[2]
        with cluster.lock:
            found = [cluster.pod_manifest(name)] if name in cluster.pods else []
        return JSONResponse({"kind": "PodList", "apiVersion": "v1", "items": found})

    def container(request: Request) -> Container | None:
        name = request.path_params["name"]
        return next((c for c in cluster.pods.values() if c.name == name), None)

    async def delete_pod(request: Request) -> Response:
        found = container(request)
        if found is None:
            return _failure(404, "no such pod")
        grace = request.query_params.get("gracePeriodSeconds", "45")
        threading.Thread(target=found.end, args=(float(grace),)).start()
        return JSONResponse({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": found.name}})

    def log(request: Request) -> Response:
        found = container(request)
        if found is None:
            return _failure(404, "no such pod")
        lines = found.log.read_text().splitlines()
        tail = lines[-int(request.query_params.get("tailLines", "1000")) :]
        return PlainTextResponse("\n".join(tail) + "\n" if tail else "")

    async def execute(socket: WebSocket) -> None:
        await socket.accept(subprotocol="v4.channel.k8s.io")
        cluster.executed.append(socket.query_params.getlist("command"))
        await socket.send_bytes(b'\x03{"metadata":{},"status":"Success"}')
        await socket.close()

    batch, core = "/apis/batch/v1/namespaces/{namespace}", "/api/v1/namespaces/{namespace}"
    app = Starlette(
        routes=[
            Route(f"{core}/pods", pods),
            WebSocketRoute(f"{core}/pods/{{name}}/exec", execute),
            Route(f"{core}/pods/{{name}}/log", log),
            Route(f"{core}/pods/{{name}}", delete_pod, methods=["DELETE"]),
            Route(f"{batch}/jobs", jobs),
            Route(f"{batch}/jobs/{{name}}", job, methods=["GET", "DELETE"]),
            Route(f"{batch}/jobs/{{name}}", patch, methods=["PATCH"]),
            Route(f"{batch}/{{kind}}", create, methods=["POST"]),
            Route(f"{core}/{{kind}}", create, methods=["POST"]),
        ]
    )

    async def in_trouble(scope: Any, receive: Any, send: Any) -> None:
        if cluster.answers and scope["type"] == "http":
            await _failure(cluster.answers, "said the test")(scope, receive, send)
        else:
            await app(scope, receive, send)

    return in_trouble  # pyright: ignore[reportReturnType]


@contextmanager
def fake_cluster(folder: Path) -> Iterator[FakeCluster]:
    """A cluster on a free port; its pods end with it."""
    cluster = FakeCluster(folder)
    settings = uvicorn.Config(
        _application(cluster), host="127.0.0.1", port=0, log_level="error", lifespan="off"
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    cluster.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield cluster
    finally:
        cluster.close()
        server.should_exit = True
        thread.join()
