"""What only a cluster can get wrong: manifests, refusals, half-made launches."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from ingest_platform.adapters.kubernetes import manifests
from ingest_platform.adapters.kubernetes.cluster import Cluster
from ingest_platform.adapters.kubernetes.launcher import KubernetesLauncher
from ingest_platform.adapters.kubernetes.manifests import DriverJob
from ingest_platform.adapters.kubernetes.settings import pod_settings
from ingest_platform.adapters.launcher import Launch
from ingest_platform.adapters.launchers import launcher_of, spec_files
from ingest_platform.adapters.local_launcher import LocalLauncher
from ingest_platform.adapters.processes import this_process
from ingest_platform.errors import RetryableFault, ServiceStartError, SpecError
from ingest_platform.model.status import RunsAt
from ingest_platform.spark.client_mode import client_mode_conf
from ingest_platform.spec import SparkSpec
from ingest_platform_tests.factories import make_spec
from ingest_platform_tests.fake_cluster import FakeCluster, fake_cluster

REPOSITORY = Path(__file__).parents[3]
LONGEST = "a" + "_" * 10 + "b" * 37  # 48 characters, as long as a stream's name may be
FULL = {
    "image": "registry/ingest:1",
    "namespace": "lake",
    "service_account": "driver",
    "secrets": ["kafka", "s3"],
    "config_maps": ["endpoints"],
    "environment": {"INGEST_LAKE": "s3a://lake"},
    "image_pull_secrets": ["registry"],
    "node_selector": {"disk": "nvme"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "labels": {"team": "ingest"},
    "annotations": {"example.com/cost": "lake"},
    "priority_class": "high",
}


def driver(name: str = "clicks", **section: object) -> DriverJob:
    spec = make_spec(name=name, kubernetes={"image": "ingest:1", **section})
    return DriverJob(
        stream=name,
        suffix="0a1b2c3d",
        files={"defs.yaml": "type: x", "schemas/clicks.json": "{}"},
        command=("python",),
        arguments=("/etc/ingest/defs.yaml", "--name", name),
        pod=pod_settings(spec, {}),
    )


@pytest.mark.parametrize("version", ["1.30", "1.33", "1.36"])
@pytest.mark.parametrize("made", [driver(), driver(LONGEST, **FULL)], ids=["least", "full"])
def test_manifests_hold_against_the_published_schemas(made, version):
    """Strictly: a field that the API does not know would be dropped without a word."""
    owner = manifests.owner_reference(made.name, "5f0c")
    for body in (
        manifests.job(made),
        manifests.config_map(made, owner),
        manifests.service(made, owner),
    ):
        kubernetes_validate.validate(body, version, strict=True)
        json.dumps(body)


def test_driver_is_never_restarted_by_the_cluster_and_keeps_its_memory():
    """Two who decide about the next driver would start two."""
    job = manifests.job(driver())
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert job["spec"]["backoffLimit"] == 0
    resources = pod["containers"][0]["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"] == "3072Mi"
    assert pod["terminationGracePeriodSeconds"] > 30


def test_names_are_short_enough_for_what_kubernetes_derives_from_them():
    name = driver(LONGEST).name
    assert len(f"{name}-abcde") <= 63
    assert name == name.lower()
    assert "_" not in name
    assert "--" not in driver("a_").name


def test_ports_are_fixed_and_the_service_is_headless():
    made = driver(driver_port=9000, block_manager_port=9001)
    service = manifests.service(made, manifests.owner_reference(made.name, "u"))
    assert service["spec"]["clusterIP"] == "None"
    assert {p["port"] for p in service["spec"]["ports"]} == {9000, 9001, 4040}
    assert service["spec"]["selector"] == {manifests.JOB_LABEL: made.name}
    assert service["metadata"]["ownerReferences"][0]["uid"] == "u"


def test_driver_in_a_pod_tells_its_executors_where_it_is():
    environment = manifests.job(driver())["spec"]["template"]["spec"]["containers"][0]["env"]
    environ = {e["name"]: e.get("value", "pod-1") for e in environment}
    on_cluster = SparkSpec(master="k8s://https://kubernetes.default.svc")
    conf = client_mode_conf(on_cluster, environ)
    assert conf["spark.driver.host"] == "ingest-clicks-0a1b2c3d.default.svc"
    assert conf["spark.driver.port"] == "7078"
    assert conf["spark.kubernetes.driver.pod.name"] == "pod-1"
    assert conf["spark.kubernetes.container.image"] == "ingest:1"
    assert client_mode_conf(SparkSpec(), environ) == {}
    assert client_mode_conf(on_cluster, {}) == {}
    here = this_process(environ=environ)
    assert (here.launcher, here.job, here.host) == ("kubernetes", "ingest-clicks-0a1b2c3d", "pod-1")
    assert here.same_process(RunsAt("kubernetes", job=here.job, namespace="default"))


def test_deployment_says_what_the_spec_does_not():
    environ = {"INGEST_IMAGE": "i:2", "INGEST_NAMESPACE": "n", "INGEST_SERVICE_ACCOUNT": "a"}
    pod = pod_settings(make_spec(spark={"driver_memory": "512m"}), environ)
    assert (pod.image, pod.namespace, pod.service_account) == ("i:2", "n", "a")
    assert pod.memory == "1536Mi"
    spec = make_spec(kubernetes={"image": "i:3", "memory": "9Gi"})
    assert pod_settings(spec, environ).image == "i:3"
    assert pod_settings(spec, environ).memory == "9Gi"
    with pytest.raises(SpecError, match="no image is named"):
        pod_settings(make_spec(), {})


def test_launcher_is_the_specs_then_the_deployments():
    environ = {"INGEST_LAUNCHER": "kubernetes", "INGEST_IMAGE": "i"}
    assert isinstance(launcher_of(make_spec(), {}), LocalLauncher)
    assert isinstance(launcher_of(make_spec(), environ), KubernetesLauncher)
    assert isinstance(launcher_of(make_spec(launcher="local"), environ), LocalLauncher)
    with pytest.raises(SpecError, match="INGEST_LAUNCHER is 'docker'"):
        launcher_of(make_spec(), {"INGEST_LAUNCHER": "docker"})


def test_schema_file_goes_with_the_spec_if_it_lies_below_it(tmp_path):
    path = tmp_path / "defs.yaml"
    path.write_text("x")
    (tmp_path / "schemas").mkdir()
    schema = tmp_path / "schemas" / "clicks.json"
    schema.write_text("{}")
    inside = make_spec(decode={"schema_file": str(schema)})
    assert spec_files(inside, path, {}) == {"defs.yaml": "x", "schemas/clicks.json": "{}"}
    with pytest.raises(SpecError, match="outside of the spec's folder"):
        spec_files(make_spec(decode={"schema_file": "/etc/hosts"}), path, {})


def test_role_allows_what_the_launcher_asks_for():
    documents = list(yaml.safe_load_all((REPOSITORY / "deploy/kubernetes/role.yaml").read_text()))
    for document in documents:
        kubernetes_validate.validate(document, "1.33", strict=True)
    rules = {r: set(rule["verbs"]) for rule in documents[0]["rules"] for r in rule["resources"]}
    assert rules["jobs"] == {"create", "get", "list", "patch", "delete"}
    assert rules["pods/log"] == {"get"}


@pytest.fixture
def cluster(tmp_path) -> Iterator[FakeCluster]:
    (tmp_path / "cluster").mkdir()
    with fake_cluster(tmp_path / "cluster") as made:
        made.secrets["kafka"] = {"KAFKA_SASL_PASSWORD": "hunter2-sentinel"}
        yield made


def launcher(cluster: FakeCluster, script: str = "import time; time.sleep(100)", text: str = "x"):
    spec = make_spec(kubernetes={"image": "ingest:1", "secrets": ["kafka"]})
    return KubernetesLauncher(
        pod_settings(spec, {}),
        cluster.connect,
        files=lambda path: {path.name: text},
        command=(sys.executable, "-c", script),
    )


LAUNCH = Launch(
    Path("/defs/defs.yaml"), "clicks", Path("/logs"), {"AWS_SECRET": "hunter2-sentinel"}
)


def ended(here: KubernetesLauncher, runs_at: RunsAt) -> bool:
    deadline = time.monotonic() + 20
    while here.alive(runs_at) is not False:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return True


def test_secrets_come_by_reference_and_stand_in_no_object(cluster):
    """Fault 32: neither a Secret's content nor the launcher's own environment is written down."""
    here = launcher(cluster, "import os; print(len(os.environ['KAFKA_SASL_PASSWORD']))")
    runs_at = here.launch(LAUNCH)
    assert ended(here, runs_at)
    assert here.log_tail(runs_at) == "16"
    assert "sentinel" not in json.dumps(list(cluster.objects.values()))
    assert len(cluster.objects) == 3


def test_pod_that_failed_is_dead(cluster):
    here = launcher(cluster, "raise SystemExit(3)")
    assert ended(here, here.launch(LAUNCH))


def test_removed_job_is_dead_and_its_objects_are_gone(cluster):
    here = launcher(cluster)
    runs_at = here.launch(LAUNCH)
    assert here.kill(runs_at)
    assert here.alive(runs_at) is False
    assert cluster.objects == {}


def test_launch_that_was_broken_off_runs_nothing_and_is_swept_by_the_next(cluster, monkeypatch):
    """Killed between two requests: the Job is suspended, so its pod cannot want for its spec."""
    here = launcher(cluster)
    with monkeypatch.context() as patch:
        patch.setattr(Cluster, "create_service", _broken_off)
        with pytest.raises(RetryableFault):
            here.launch(LAUNCH)
    assert cluster.pods == {}
    (half,) = [name for kind, _, name in cluster.objects if kind == "jobs"]
    runs_at = here.launch(LAUNCH)
    names = {name for _, _, name in cluster.objects}
    assert names == {runs_at.job}
    assert half not in names
    here.kill(runs_at)


def _broken_off(*_: object) -> None:
    raise RetryableFault("no answer", remedy="")


def test_server_in_trouble_makes_no_driver_dead(cluster):
    """While nobody answers, only the heartbeat can tell; a wrong `dead` starts a second one."""
    here = launcher(cluster)
    runs_at = here.launch(LAUNCH)
    cluster.answers = 503
    assert here.alive(runs_at) is None
    with pytest.raises(RetryableFault, match=r"busy \(503\): said the test"):
        here.launch(LAUNCH)
    cluster.answers = None
    assert here.alive(runs_at) is True
    here.kill(runs_at)


def test_missing_rights_are_told_with_their_remedy(cluster):
    cluster.answers = 403
    with pytest.raises(ServiceStartError, match=r"refuses \(403\)") as refused:
        launcher(cluster).launch(LAUNCH)
    assert "deploy/kubernetes/role.yaml" in refused.value.remedy


def test_unreachable_server_is_a_fault_that_heals():
    nowhere = FakeCluster(Path("/"), port=9)
    with pytest.raises(RetryableFault, match="does not answer"):
        launcher(nowhere).launch(LAUNCH)
    assert launcher(nowhere).alive(RunsAt("kubernetes", job="j", namespace="n")) is None


def test_spec_too_large_for_a_config_map_is_refused_before_anything_is_made(cluster):
    with pytest.raises(SpecError, match="a ConfigMap holds"):
        launcher(cluster, text="x" * 1_000_001).launch(LAUNCH)
    assert cluster.objects == {}


def test_threads_are_dumped_by_a_signal_inside_of_the_container(cluster):
    here = launcher(cluster)
    runs_at = here.launch(LAUNCH)
    assert here.dump_threads(runs_at)
    ((shell, option, script),) = cluster.executed
    assert (shell, option) == ("sh", "-c")
    assert "kill -3" in script
    here.kill(runs_at)
    assert not here.dump_threads(runs_at)
