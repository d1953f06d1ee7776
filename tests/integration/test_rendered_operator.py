"""End to end: a rendered repository, installed, generated into, deployed with its own manifest, run and stopped."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.support.baking import bake, install, invoke
from tests.support.processes import OperatorProcess

SLUG = "widgets-operator"
V1, V2 = "example.com/v1", "example.com/v2alpha1"

DEPLOYMENTS = '''"""Deployment: publishes the wanted replicas of every Deployment in a ConfigMap."""

from typing import Any

from bonny import Axn, Controller, Kind, Owned


class DeploymentController(Controller[Any]):
    resource = Kind("apps/v1", "Deployment")
    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Any]) -> None:
        axn.register_descendant(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{axn.key.name}-replicas"},
                "data": {"replicas": str(axn.spec.get("replicas", 1))},
            }
        )
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rendered repository with two kinds, one of them in two versions, and two controllers of a core kind."""
    baked = bake(tmp_path_factory.mktemp("end-to-end") / "bake")
    assert baked.code == 0, baked.said
    install(baked.project)
    for words in (
        "Widget widgets --version v2alpha1 --short-name wd",
        "Widget widgets --version v1",
        "Gadget gadgets",
        "Labelled deployments --for apps/v1/Deployment --finalizer",
    ):
        done = invoke(baked.project, "gen-controller", *words.split())
        assert done.returncode == 0, done.stderr
    (baked.project / "src/widgets_operator/controllers/deployment.py").write_text(DEPLOYMENTS, "utf-8")
    return baked.project


@pytest.fixture(scope="module")
def manifest(project: Path) -> list[Resource]:
    done = invoke(project, "manifest", "--local", "--out", "-")
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture
def own(manifest: list[Resource]) -> Any:
    """A sandbox of its own, with the manifest applied: other tests' CRDs have the same names."""
    with Sandbox() as sandbox:
        sandbox.apply(manifest)
        yield sandbox


@pytest.fixture
def start(own: Sandbox, project: Path, start_operator: Start) -> Any:
    """Starts the operator as its ServiceAccount, with the rights of its manifest."""

    def started() -> OperatorProcess:
        identity = own.service_account_kubeconfig(SLUG, SLUG)
        python = str(project / ".venv/bin/python")
        return start_operator([python, "-m", "widgets_operator"], kubeconfig=identity, cwd=project).wait_ready()

    return started


def sample(project: Path, name: str) -> Resource:
    loaded: Resource = yaml.safe_load((project / "samples" / name).read_text("utf-8"))
    return loaded


def is_ready(resource: Resource | None) -> bool:
    conditions = ((resource or {}).get("status") or {}).get("conditions") or ()
    return any(known["type"] == "Ready" and known["status"] == "True" for known in conditions)


def children(sandbox: Sandbox, owner: Resource) -> list[Resource]:
    uid = owner["metadata"]["uid"]
    return sandbox.items("v1", "ConfigMap", label_selector=f"bonny.dev/owner-uid={uid}")


def data_of(sandbox: Sandbox, owner: Resource) -> list[dict[str, str]]:
    return [found["data"] for found in children(sandbox, owner)]


def test_a_rendered_operator_serves_its_kinds_with_the_rights_of_its_manifest(
    own: Sandbox, project: Path, start: Any
) -> None:
    operator = start()
    widget, gadget = sample(project, "widget-v2alpha1.yaml"), sample(project, "gadget-v1.yaml")

    # create
    owner, other = own.apply([widget, gadget])
    own.eventually(lambda: is_ready(own.get(V2, "Widget", owner["metadata"]["name"])))
    own.eventually(lambda: is_ready(own.get(V1, "Gadget", other["metadata"]["name"])))
    assert data_of(own, owner) == [{"size": str(widget["spec"]["size"])}]

    # the other version of the kind: readable as the hub, and handled
    as_v1 = {**sample(project, "widget-v1.yaml")}
    as_v1["metadata"] = {**as_v1["metadata"], "name": "written-as-v1"}
    (second,) = own.apply(as_v1)
    own.eventually(lambda: is_ready(own.get(V2, "Widget", "written-as-v1")))
    assert len(children(own, second)) == 1

    # update, drift, deletion of the child
    own.apply({**widget, "spec": {**widget["spec"], "size": 42}})
    own.eventually(lambda: data_of(own, owner) == [{"size": "42"}])
    (child,) = children(own, owner)
    name, namespace = child["metadata"]["name"], child["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    own.request("PATCH", path, {"data": {"size": "0"}}, content_type="application/merge-patch+json")
    own.eventually(lambda: data_of(own, owner) == [{"size": "42"}])
    own.delete("v1", "ConfigMap", name, namespace=namespace)
    own.eventually(lambda: data_of(own, owner) == [{"size": "42"}])

    # a core resource
    (deployment,) = own.apply(web("web"))
    own.eventually(lambda: data_of(own, deployment) == [{"replicas": "3"}])

    # delete
    own.delete(V2, "Widget", owner["metadata"]["name"])
    own.eventually(lambda: own.get(V2, "Widget", owner["metadata"]["name"]) is None)

    # SIGTERM
    code, seconds = operator.stop()
    assert (code, seconds < 5) == (0, True)
    # While the API server sets up the storage of a new kind, it asks to wait.
    assert [line for line in operator.lines("watch failed") if line["kind"] != "throttled"] == []
    assert not operator.lines("reconcile failed")


def web(name: str, **labels: str) -> Resource:
    pods = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": pods},
            "template": {"metadata": {"labels": pods}, "spec": {"containers": [{"name": "web", "image": "web"}]}},
        },
    }


def test_a_generated_controller_of_a_kind_of_others_handles_what_has_its_label_and_lets_it_go(
    own: Sandbox, start: Any
) -> None:
    operator = start()
    asks = {"example.com/labelled": "enabled"}
    own.apply([web("plain"), web("asks", **asks)])

    def published(name: str) -> Any:
        found = own.get("v1", "ConfigMap", f"{name}-labelled")
        return found and json.loads(found["data"]["labels"])

    own.eventually(lambda: published("asks") == asks)
    own.apply(web("asks", **asks, tier="one"))
    own.eventually(lambda: published("asks") == {**asks, "tier": "one"})

    asking = own.get("apps/v1", "Deployment", "asks")
    assert asking is not None
    assert asking["metadata"]["finalizers"] == [f"{SLUG}.example.com/labelled-controller"]
    own.delete("apps/v1", "Deployment", "asks")
    own.eventually(lambda: own.get("apps/v1", "Deployment", "asks") is None)

    plain = own.get("apps/v1", "Deployment", "plain")
    assert plain is not None
    assert "finalizers" not in plain["metadata"]
    assert published("plain") is None
    assert not operator.lines("reconcile failed")


def watched_versions(sandbox: Sandbox, plural: str) -> set[str]:
    """The versions in which somebody watches the kind now, by the API server's own count."""
    found = set()
    for line in sandbox.request("GET", "/metrics").body.splitlines():
        if line.startswith("apiserver_longrunning_requests{") and not line.endswith(" 0"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if (labels["resource"], labels["verb"]) == (plural, "WATCH"):
                found.add(labels["version"])
    return found


def test_objects_of_two_generated_versions_are_readable_as_each_other_and_the_hub_is_what_is_watched(
    own: Sandbox, project: Path, start: Any
) -> None:
    operator = start()
    as_hub, as_v1 = sample(project, "widget-v2alpha1.yaml"), sample(project, "widget-v1.yaml")
    as_hub["metadata"]["name"], as_v1["metadata"]["name"] = "written-as-hub", "written-as-v1"
    owners = own.apply([as_hub, as_v1])

    def read(version: str, name: str) -> Resource:
        found = own.get(version, "Widget", name)
        assert found is not None
        return found

    for owner in owners:
        name = owner["metadata"]["name"]
        own.eventually(lambda name=name: is_ready(own.get(V1, "Widget", name)))  # type: ignore[misc]
        for part in ("spec", "status"):
            assert read(V1, name)[part] == read(V2, name)[part]
        assert {read(version, name)["metadata"]["uid"] for version in (V1, V2)} == {owner["metadata"]["uid"]}
        assert [read(version, name)["apiVersion"] for version in (V1, V2)] == [V1, V2]

    # a change in either version is the operator's business
    for number, (owner, form) in enumerate(zip(owners, (V1, V2), strict=True), start=50):
        own.apply(
            {**owner, "apiVersion": form, "metadata": {"name": owner["metadata"]["name"]}, "spec": {"size": number}}
        )
        own.eventually(lambda owner=owner, number=number: data_of(own, owner) == [{"size": str(number)}])  # type: ignore[misc]

    assert watched_versions(own, "widgets") == {"v2alpha1"}
    crd = own.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com")
    assert crd is not None
    assert crd["status"]["storedVersions"] == ["v2alpha1"]
    assert crd["spec"]["names"]["shortNames"] == ["wd"]
    # The server answers this for a moment where a definition was installed.
    failed = [line for line in operator.lines("watch failed") if line["error"] != "storage is (re)initializing"]
    assert failed == []


def test_a_restart_takes_up_what_is_there_and_what_changed_meanwhile(own: Sandbox, project: Path, start: Any) -> None:
    first = start()
    widget = sample(project, "widget-v2alpha1.yaml")
    (owner,) = own.apply(widget)
    own.eventually(lambda: is_ready(own.get(V2, "Widget", owner["metadata"]["name"])))
    first.process.kill()
    first.process.wait()
    own.apply({**widget, "spec": {**widget["spec"], "size": 9}})

    start()

    own.eventually(lambda: data_of(own, owner) == [{"size": "9"}])


def test_without_its_role_it_names_the_missing_rule_and_goes_on_when_it_is_granted(
    own: Sandbox, project: Path, manifest: list[Resource], start: Any, start_operator: Start
) -> None:
    (binding,) = [known for known in manifest if known["kind"] == "ClusterRoleBinding"]
    own.delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", binding["metadata"]["name"])
    identity = own.service_account_kubeconfig(SLUG, SLUG)
    python = str(project / ".venv/bin/python")
    operator = start_operator([python, "-m", "widgets_operator"], kubeconfig=identity, cwd=project)

    rule = '- {apiGroups: ["example.com"], resources: ["widgets"], verbs: [get, list, watch]}'
    own.eventually(lambda: rule in {line["missing_rule"] for line in operator.lines("watch failed")})
    own.eventually(lambda: operator.probe("/readyz")[0] == 503)
    own.apply([binding, sample(project, "widget-v2alpha1.yaml")])

    own.eventually(lambda: is_ready(own.get(V2, "Widget", "widget-sample")), within_seconds=60)
    assert operator.process.poll() is None


@pytest.mark.slow  # tests/template/test_rendered_project does it with more kinds
def test_the_rendered_tests_and_checks_are_green_with_these_kinds(project: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(project, tmp_path / SLUG, symlinks=True))
    (copy / ".venv").unlink() if (copy / ".venv").is_symlink() else shutil.rmtree(copy / ".venv")
    install(copy)

    for task in ("lint", "test"):
        done = invoke(copy, task)
        assert done.returncode == 0, done.stdout + done.stderr
