"""A sandbox with workloads: real controllers, and pods that become ready, fail and end as a test asks for."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bonny.errors import UsageError
from bonny.resource import Resource
from bonny_dev import testing
from bonny_dev.sandbox import Sandbox, SandboxError
from bonny_dev.sandbox.workloads import MANAGER, Workloads
from bonny_dev.testing.running import running
from bonny_dev.workloads.behaviours import ANNOTATION
from tests.integration.test_running_operator import FILES, RUNTIME
from tests.integration.test_sandbox import (
    RUN,
    START,
    STOP,
    crd,
    kubeconfig_in,
    line_of,
    processes_naming,
    python,
    wait_until_gone,
)
from tests.support.controllers import skip_without_controllers

_numbers = count(1)
TEMPLATE = {"containers": [{"name": "main", "image": "registry.example.com/app:1"}]}


@pytest.fixture(autouse=True, scope="module")
def _is_there() -> None:
    """`make test` builds no controllers, `make test-all` does."""
    skip_without_controllers()


@pytest.fixture(autouse=True)
def _controllers_run(workloads: Workloads) -> None:
    """All tests of this module have controllers."""


@pytest.fixture
def namespace(sandbox: Sandbox, workloads: Workloads) -> Iterator[str]:
    """A namespace for one test; the namespace controller empties it afterwards."""
    name = f"workloads-{next(_numbers)}"
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    sandbox.delete("v1", "Namespace", name)


def pod(name: str, *, namespace: str, behaviour: str = "", **spec: Any) -> Resource:
    metadata: Resource = {"name": name, "namespace": namespace}
    metadata |= {"annotations": {ANNOTATION: behaviour}} if behaviour else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**TEMPLATE, **spec}}


def of_pods(
    api_version: str,
    kind: str,
    name: str,
    *,
    namespace: str,
    behaviour: str = "",
    pods: Resource | None = None,
    **spec: Any,
) -> Resource:
    """An object that makes pods with the label app=`name`."""
    labels = {"app": name}
    annotations = {ANNOTATION: behaviour} if behaviour else {}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": {**TEMPLATE, **(pods or {})}}
    selected = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    metadata = {"name": name, "namespace": namespace}
    spec = {**selected, "template": template, **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def deployment(name: str, *, namespace: str, replicas: int = 2, **more: Any) -> Resource:
    return of_pods("apps/v1", "Deployment", name, namespace=namespace, replicas=replicas, **more)


def job(name: str, *, namespace: str, restart: str = "Never", **more: Any) -> Resource:
    return of_pods("batch/v1", "Job", name, namespace=namespace, pods={"restartPolicy": restart}, **more)


def until(
    sandbox: Sandbox, like: Resource, holds: Callable[[Resource], object], *, within_seconds: float = 20.0
) -> Resource:
    """The live object, once the condition holds."""
    metadata = like["metadata"]

    def look() -> Resource | None:
        live = sandbox.get(like["apiVersion"], like["kind"], metadata["name"], namespace=metadata.get("namespace", ""))
        return live if live is not None and holds(live) else None

    found = sandbox.eventually(look, within_seconds=within_seconds)
    assert found is not None
    return found


def until_gone(sandbox: Sandbox, like: Resource, *, within_seconds: float = 20.0) -> None:
    name, namespace = like["metadata"]["name"], like["metadata"].get("namespace", "")
    sandbox.eventually(
        lambda: sandbox.get(like["apiVersion"], like["kind"], name, namespace=namespace) is None,
        within_seconds=within_seconds,
    )


def controllers_of(sandbox: Sandbox) -> set[str]:
    """The process ids of kube-controller-manager."""
    listed = processes_naming(sandbox.folder)
    return {line.split()[0] for line in listed if f"{MANAGER} --kubeconfig" in line}


def pods_of(sandbox: Sandbox, name: str, namespace: str) -> list[Resource]:
    return sandbox.items("v1", "Pod", namespace=namespace, label_selector=f"app={name}")


def is_true(type_: str) -> Callable[[Resource], bool]:
    def holds(live: Resource) -> bool:
        conditions = live.get("status", {}).get("conditions", ())
        return any(each["type"] == type_ and each["status"] == "True" for each in conditions)

    return holds


def waiting_because(reason: str) -> Callable[[Resource], bool]:
    def holds(live: Resource) -> bool:
        states = [each["state"] for each in live["status"].get("containerStatuses", ())]
        return any(state.get("waiting", {}).get("reason") == reason for state in states)

    return holds


def test_a_deployment_becomes_available_and_its_service_gets_the_addresses(sandbox: Sandbox, namespace: str) -> None:
    made = deployment("web", namespace=namespace, replicas=3)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    sandbox.apply([service, made])

    live = until(sandbox, made, is_true("Available"))
    assert live["status"]["availableReplicas"] == 3

    def addresses() -> set[str]:
        slices = sandbox.items("discovery.k8s.io/v1", "EndpointSlice", namespace=namespace)
        return {each["addresses"][0] for one in slices for each in one["endpoints"] if each["conditions"]["ready"]}

    sandbox.eventually(lambda: len(addresses()) == 3)
    assert addresses() == {each["status"]["podIP"] for each in pods_of(sandbox, "web", namespace)}


def test_deleting_an_owner_collects_its_children_down_to_the_pods(sandbox: Sandbox, namespace: str) -> None:
    made = deployment("web", namespace=namespace)
    sandbox.apply(made)
    until(sandbox, made, is_true("Available"))

    sandbox.delete("apps/v1", "Deployment", "web", namespace=namespace)

    sandbox.eventually(lambda: pods_of(sandbox, "web", namespace) == [], within_seconds=20.0)
    assert sandbox.items("apps/v1", "ReplicaSet", namespace=namespace) == []


def test_children_of_a_kind_that_is_new_are_collected_without_the_usual_half_minute(
    sandbox: Sandbox, namespace: str
) -> None:
    """The garbage collector looks for new kinds every 30 s, so the controllers are started again."""
    before = controllers_of(sandbox)
    definition = crd("parents", "Parent")
    parent = {
        "apiVersion": "sandbox.example.com/v1",
        "kind": "Parent",
        "metadata": {"name": "p1", "namespace": namespace},
    }
    _, owner = sandbox.apply([definition, parent])
    reference = {name: owner[name] for name in ("apiVersion", "kind")}
    reference |= {name: owner["metadata"][name] for name in ("name", "uid")}
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "child", "namespace": namespace, "ownerReferences": [reference]},
    }
    sandbox.apply(child)
    sandbox.eventually(lambda: len(controllers_of(sandbox) - before) == 1, within_seconds=20.0)

    sandbox.delete("sandbox.example.com/v1", "Parent", "p1", namespace=namespace)
    until_gone(sandbox, child)

    sandbox.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition["metadata"]["name"])


def test_a_deleted_namespace_goes_with_everything_in_it(sandbox: Sandbox) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short-lived"}}
    made = deployment("web", namespace="short-lived")
    sandbox.apply([space, made])
    until(sandbox, made, is_true("Available"))

    sandbox.delete("v1", "Namespace", "short-lived")

    until_gone(sandbox, space, within_seconds=40.0)


def test_a_job_completes_and_one_whose_container_crashes_twice_completes_at_the_third_try(
    sandbox: Sandbox, namespace: str
) -> None:
    plain = job("plain", namespace=namespace)
    restarting = job("restarting", namespace=namespace, restart="OnFailure", behaviour="crash=2")
    sandbox.apply([plain, restarting])

    assert "failed" not in until(sandbox, plain, is_true("Complete"))["status"]
    until(sandbox, restarting, is_true("Complete"))
    (pod_of_it,) = sandbox.items("v1", "Pod", namespace=namespace, label_selector="job-name=restarting")
    assert pod_of_it["status"]["containerStatuses"][0]["restartCount"] == 2


@pytest.mark.slow
def test_a_job_whose_pods_fail_twice_completes_with_the_third_pod(sandbox: Sandbox, namespace: str) -> None:
    again = job("again", namespace=namespace, behaviour="crash=2")
    sandbox.apply(again)

    # The Job controller waits 10 s and 20 s before it makes another pod.
    assert until(sandbox, again, is_true("Complete"), within_seconds=60.0)["status"]["failed"] == 2


def test_a_job_that_hangs_runs_into_its_deadline(sandbox: Sandbox, namespace: str) -> None:
    made = job("slow", namespace=namespace, behaviour="hang", activeDeadlineSeconds=3)
    sandbox.apply(made)

    failed = until(sandbox, made, is_true("Failed"))

    assert {each["reason"] for each in failed["status"]["conditions"]} == {"DeadlineExceeded"}
    sandbox.eventually(lambda: not sandbox.items("v1", "Pod", namespace=namespace, label_selector="job-name=slow"))


def test_a_stateful_set_starts_its_pods_in_order_each_with_its_volume(sandbox: Sandbox, namespace: str) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    more = {"serviceName": "db", "replicas": 3, "volumeClaimTemplates": [claim]}
    made = of_pods("apps/v1", "StatefulSet", "db", namespace=namespace, **more)
    sandbox.apply(made)

    until(sandbox, made, lambda live: live["status"]["availableReplicas"] == 3)

    versions = {
        each["metadata"]["name"]: int(each["metadata"]["resourceVersion"]) for each in pods_of(sandbox, "db", namespace)
    }
    assert sorted(versions, key=lambda name: versions[name]) == ["db-0", "db-1", "db-2"]
    claims = sandbox.items("v1", "PersistentVolumeClaim", namespace=namespace)
    assert {each["status"]["phase"] for each in claims} == {"Bound"}

    volumes = {each["spec"]["volumeName"] for each in claims}
    sandbox.delete("apps/v1", "StatefulSet", "db", namespace=namespace)
    for each in claims:
        sandbox.delete("v1", "PersistentVolumeClaim", each["metadata"]["name"], namespace=namespace)
    sandbox.eventually(
        lambda: volumes.isdisjoint(each["metadata"]["name"] for each in sandbox.items("v1", "PersistentVolume")),
        within_seconds=20.0,
    )


def test_a_daemon_set_has_a_pod_on_each_node(sandbox: Sandbox, namespace: str) -> None:
    second = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "second"}}
    made = of_pods("apps/v1", "DaemonSet", "agent", namespace=namespace)
    sandbox.apply([second, made])

    until(sandbox, made, lambda live: live["status"]["numberAvailable"] == 2)

    assert {each["spec"]["nodeName"] for each in pods_of(sandbox, "agent", namespace)} == {"sandbox", "second"}
    sandbox.delete("apps/v1", "DaemonSet", "agent", namespace=namespace)
    sandbox.delete("v1", "Node", "second")


def test_a_pod_of_another_scheduler_is_left_to_it_and_runs_once_it_is_bound(sandbox: Sandbox, namespace: str) -> None:
    theirs, ours = pod("theirs", namespace=namespace, schedulerName="cheap"), pod("ours", namespace=namespace)
    sandbox.apply([theirs, ours])
    until(sandbox, ours, is_true("Ready"))  # made after the other one
    assert "nodeName" not in until(sandbox, theirs, bool)["spec"]

    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "theirs"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "sandbox"},
    }
    assert sandbox.request("POST", f"/api/v1/namespaces/{namespace}/pods/theirs/binding", binding).status == 201

    until(sandbox, theirs, is_true("Ready"))


def test_a_pod_that_no_node_fits_says_so(sandbox: Sandbox, namespace: str) -> None:
    made = pod("picky", namespace=namespace, nodeSelector={"disk": "fast"})
    sandbox.apply(made)

    live = until(sandbox, made, lambda live: live["status"]["conditions"][0]["reason"] == "Unschedulable")

    assert live["status"]["conditions"][0]["message"].startswith("0/1 nodes are available")


def test_a_readiness_gate_is_left_to_its_writer(sandbox: Sandbox, namespace: str) -> None:
    made = pod("gated", namespace=namespace, readinessGates=[{"conditionType": "example.com/ok"}])
    sandbox.apply(made)
    assert not is_true("Ready")(until(sandbox, made, is_true("ContainersReady")))

    status = {"status": {"conditions": [{"type": "example.com/ok", "status": "True"}]}}
    path = f"/api/v1/namespaces/{namespace}/pods/gated/status"
    sandbox.request("PATCH", path, status, content_type="application/strategic-merge-patch+json")

    until(sandbox, made, is_true("Ready"))


def test_an_annotation_makes_pods_not_ready_for_some_seconds(sandbox: Sandbox, namespace: str) -> None:
    made = deployment("web", namespace=namespace, behaviour="not-ready=2")
    sandbox.apply(made)
    running = sandbox.eventually(
        lambda: [each for each in pods_of(sandbox, "web", namespace) if each["status"]["phase"] == "Running"]
    )
    assert not any(map(is_true("Ready"), running))

    until(sandbox, made, is_true("Available"))


def test_pods_of_a_rule_are_not_ready_until_it_is_reset(sandbox: Sandbox, workloads: Workloads, namespace: str) -> None:
    made = pod("later", namespace=namespace)
    workloads.simulate("la*", "not-ready", namespace=namespace)
    sandbox.apply(made)
    until(sandbox, made, lambda live: live["status"]["phase"] == "Running" and not is_true("Ready")(live))

    workloads.reset()
    until(sandbox, made, is_true("Ready"))

    workloads.simulate("later", "not-ready", namespace=namespace)
    until(sandbox, made, lambda live: not is_true("Ready")(live))


def test_an_image_that_cannot_be_pulled_keeps_a_deployment_from_becoming_available(
    sandbox: Sandbox, namespace: str
) -> None:
    made = deployment("web", namespace=namespace, replicas=1, behaviour="image-pull-error", progressDeadlineSeconds=2)
    sandbox.apply(made)

    live = until(sandbox, made, lambda live: "ProgressDeadlineExceeded" in str(live["status"]["conditions"]))

    assert not is_true("Available")(live)
    (only,) = pods_of(sandbox, "web", namespace)
    assert waiting_because("ImagePullBackOff")(only)
    assert only["status"]["phase"] == "Pending"


def test_a_crash_loop_counts_its_restarts_and_ends_at_its_limit(sandbox: Sandbox, namespace: str) -> None:
    always, thrice = (
        pod("always", namespace=namespace, behaviour="crash"),
        pod("thrice", namespace=namespace, behaviour="crash=3"),
    )
    sandbox.apply([always, thrice])

    until(sandbox, always, waiting_because("CrashLoopBackOff"))
    until(sandbox, always, lambda live: live["status"]["containerStatuses"][0]["restartCount"] >= 2)
    ready = until(sandbox, thrice, is_true("Ready"))

    (container,) = ready["status"]["containerStatuses"]
    assert (container["restartCount"], container["lastState"]["terminated"]["exitCode"]) == (3, 1)


def test_calls_have_the_effects_of_annotations(sandbox: Sandbox, workloads: Workloads, namespace: str) -> None:
    workloads.simulate("late", "not-ready=2", namespace=namespace)
    workloads.simulate("unpulled", "image-pull-error=2", namespace=namespace)
    workloads.simulate("looping", "crash", namespace=namespace)
    workloads.simulate("unplaced", "pending", namespace=namespace)
    workloads.simulate("moved", "evict=1", namespace=namespace)
    late, unpulled, looping, unplaced, moved = made = [
        pod(name, namespace=namespace) for name in ("late", "unpulled", "looping", "unplaced", "moved")
    ]
    sandbox.apply(made)

    until(sandbox, unpulled, waiting_because("ImagePullBackOff"))
    until(sandbox, looping, waiting_because("CrashLoopBackOff"))
    until(sandbox, moved, lambda live: live["status"].get("reason") == "Evicted")
    assert "nodeName" not in until(sandbox, unplaced, lambda live: live["status"].get("conditions"))["spec"]
    for each in (late, unpulled):
        until(sandbox, each, is_true("Ready"))
    workloads.reset()
    for each in (looping, unplaced):
        until(sandbox, each, is_true("Ready"))


@pytest.mark.slow
def test_a_call_lets_the_pods_of_a_job_fail_twice(sandbox: Sandbox, workloads: Workloads, namespace: str) -> None:
    workloads.simulate("again-*", "crash=2", namespace=namespace)
    again = job("again", namespace=namespace)
    sandbox.apply(again)

    # The Job controller waits 10 s and 20 s before it makes another pod.
    assert until(sandbox, again, is_true("Complete"), within_seconds=60.0)["status"]["failed"] == 2


def test_an_evicted_pod_is_replaced(sandbox: Sandbox, workloads: Workloads, namespace: str) -> None:
    made = deployment("web", namespace=namespace, replicas=1)
    sandbox.apply(made)
    until(sandbox, made, is_true("Available"))

    (name,) = workloads.evict("web-*", namespace=namespace)

    evicted = until(sandbox, pod(name, namespace=namespace), lambda live: live["status"]["phase"] == "Failed")
    assert evicted["status"]["reason"] == "Evicted"
    sandbox.eventually(
        lambda: [each for each in pods_of(sandbox, "web", namespace) if is_true("Ready")(each)], within_seconds=20.0
    )


def test_a_claim_that_stays_pending_keeps_its_pod_pending(
    sandbox: Sandbox, workloads: Workloads, namespace: str
) -> None:
    workloads.simulate_claims("data*", namespace=namespace)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    made = pod("db", namespace=namespace, volumes=[volume])
    sandbox.apply([claim, made])
    live = until(sandbox, made, lambda live: live["status"]["conditions"][0]["reason"] == "Unschedulable")
    assert live["status"]["conditions"][0]["message"] == "pod has unbound PersistentVolumeClaims: data"
    assert until(sandbox, claim, bool)["status"]["phase"] == "Pending"

    workloads.reset()

    until(sandbox, made, is_true("Ready"))


def test_annotations_evict_a_pod_and_keep_a_claim_pending_for_some_seconds(sandbox: Sandbox, namespace: str) -> None:
    evicted = pod("evicted", namespace=namespace, behaviour="evict=1")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "slow", "namespace": namespace, "annotations": {ANNOTATION: "pending=2"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    sandbox.apply([claim, evicted])
    until(sandbox, evicted, is_true("Ready"))
    assert until(sandbox, claim, bool)["status"]["phase"] == "Pending"

    live = until(sandbox, evicted, lambda live: live["status"]["phase"] == "Failed")
    assert live["status"]["reason"] == "Evicted"
    until(sandbox, claim, lambda live: live["status"]["phase"] == "Bound")


def test_a_misspelt_annotation_is_named_in_the_status_of_the_pod(sandbox: Sandbox, namespace: str) -> None:
    made = pod("odd", namespace=namespace, behaviour="crashloop")
    sandbox.apply(made)

    live = until(sandbox, made, lambda live: live["status"]["conditions"])

    assert "cannot simulate 'crashloop': use not-ready, image-pull-error" in str(live["status"]["conditions"])


def test_a_misspelt_behaviour_is_refused_where_it_is_written(workloads: Workloads) -> None:
    with pytest.raises(UsageError, match="cannot simulate 'crashloop': use not-ready"):
        workloads.simulate("web-*", "crashloop")
    with pytest.raises(UsageError, match="cannot simulate 'crash': use pending"):
        workloads.simulate_claims("data-*", "crash")


def test_controllers_go_on_after_the_api_server_was_killed() -> None:
    with Sandbox(workloads=True) as sandbox:
        sandbox.apiserver.kill()
        sandbox.apiserver.start()
        made = deployment("web", namespace="default")
        sandbox.apply(made)

        until(sandbox, made, is_true("Available"), within_seconds=40.0)
        assert [server.running for server in sandbox.servers] == [True, True, True]

        sandbox.stop_workloads()
        with pytest.raises(SandboxError, match="this sandbox runs no controllers"):
            _ = sandbox.workloads
        assert [line for line in processes_naming(sandbox.folder) if MANAGER in line] == []
        sandbox.start_workloads()
        until(sandbox, made, is_true("Available"))


WAITING_OWNER = """
import sys
from bonny_dev.sandbox import Sandbox
sandbox = Sandbox(workloads=True).start()
print(sandbox.folder, flush=True)
sys.stdin.read()
"""


def test_nothing_outlives_a_parent_that_is_killed() -> None:
    with python(WAITING_OWNER) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        # etcd, kube-apiserver, kube-controller-manager, the simulated kubelets, and the watchdog
        assert len(processes_naming(folder)) == 5

        owner.kill()
        owner.wait()

        wait_until_gone(folder)


def test_controllers_that_end_by_themselves_end_the_sandbox_with_their_own_words(tmp_path: Path) -> None:
    broken = tmp_path / MANAGER
    broken.write_text("#!/bin/sh\n[ $# = 1 ] && echo Kubernetes v1.36.3 && exit\necho no such flag\nexit 3\n", "utf-8")
    broken.chmod(0o755)
    with Sandbox() as sandbox:
        sandbox._found[MANAGER] = broken

        with pytest.raises(
            SandboxError, match=r"(?s)workloads stopped .* \(code 1\).*kube-controller-manager ended.*no such flag"
        ):
            sandbox.start_workloads()


def test_a_reset_is_refused_while_controllers_run(sandbox: Sandbox) -> None:
    with pytest.raises(
        SandboxError, match=r"^controllers remember the objects of the sandbox: call stop_workloads\(\)"
    ):
        sandbox.reset()


def blocks(page: str) -> list[str]:
    """The Python of a how-to page: the operator in one or more blocks, then tests, of which the last need a server."""
    text = (Path(__file__).parents[2] / "docs" / "how-to" / f"{page}.md").read_text("utf-8")
    found: list[str] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return found


PAGES = {"simulate-workloads": "caches", "set-up-in-stages": "shops"}
TESTS = [(page, name) for page in PAGES for name in re.findall(r"async def (test_\w+)", blocks(page)[-1])]


@pytest.mark.parametrize(("page", "name"), TESTS)
async def test_the_tests_of_a_how_to_page_pass(
    page: str, name: str, sandbox: Sandbox, workloads: Workloads, tmp_path: Path
) -> None:
    *before, tests = blocks(page)
    operator = "\n".join(block for block in before if "bonny_dev" not in block)
    files = {path.replace("refused", PAGES[page]): text.replace("refused", PAGES[page]) for path, text in FILES.items()}
    for path, text in {**files, f"src/{PAGES[page]}/operator.py": operator}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "bonny").symlink_to(RUNTIME / "bonny")
    scope: dict[str, Any] = {"Resource": Resource, "testing": testing}
    exec(tests, scope)

    async with running(sandbox, tmp_path) as running_operator:
        await scope[name](running_operator, workloads)


def test_a_sandbox_in_the_background_has_controllers_if_they_are_asked_for(tmp_path: Path) -> None:
    with python(START.replace("start()", "start(workloads=True)"), cwd=tmp_path) as start:
        output, errors = start.communicate(timeout=60)
    assert errors == ""
    kubeconfig = kubeconfig_in(output.splitlines())
    folder = kubeconfig.parent
    assert [line for line in processes_naming(folder) if "/kube-controller-manager --kubeconfig" in line]

    with python(STOP, cwd=tmp_path) as stop:
        assert line_of(stop) == "The sandbox is stopped."
    wait_until_gone(folder, within_seconds=0.5)


def test_a_sandbox_ends_with_the_process_that_simulates_its_pods(tmp_path: Path) -> None:
    with python(RUN.replace("run()", "run(workloads=True)"), cwd=tmp_path) as process:
        folder = kubeconfig_in([line_of(process) for _ in range(3)]).parent
        (simulated,) = [line for line in processes_naming(folder) if "-m bonny_dev.workloads" in line]

        os.kill(int(simulated.split()[0]), signal.SIGKILL)

        _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "workloads stopped by itself" in errors
    wait_until_gone(folder)
