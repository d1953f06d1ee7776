"""`invoke install` and `invoke uninstall` on a real API server: what is made, how it goes again, what is refused."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from bonny import Operator, Spec, Status, Version
from bonny.client.config import Kubeconfig
from bonny.client.errors import NotServed
from bonny.errors import ApiError, UsageError
from bonny.resource import Resource
from bonny.webhooks import Admission, Denied, Review
from bonny_dev import install
from bonny_dev.manifest import bundle
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks import deploy
from bonny_dev.testing.faults import Fault, FaultProxy, Respond
from tests.conftest import Start
from tests.support.baking import bake
from tests.support.processes import RUNTIME
from tests.support.waiting import until

SLUG = "widgets-operator"
WIDGETS = "/apis/example.com/v1/widgets"
FINALIZE = '''
    async def finalize(self, axn: Axn[Widget]) -> None:
        """Nothing is outside of the cluster here; that it ran is what the tests look at."""
'''

Task = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rendered repository with one kind, whose controller has a finalizer."""
    baked = bake(tmp_path_factory.mktemp("deploy") / "bake")
    assert baked.code == 0, baked.said
    invoked(baked.project, "gen-controller", "Widget", "widgets")
    controller = baked.project / "src/widgets_operator/controllers/widget.py"
    head, separator, rest = controller.read_text("utf-8").partition("\n\n\ndef ")
    controller.write_text(head + "\n" + FINALIZE + separator + rest, encoding="utf-8")
    return baked.project


def invoked(
    project: Path, *words: str, kubeconfig: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    settings = {name: text for name, text in os.environ.items() if not name.startswith(("BONNY_", "KUBE", "PYTHON"))}
    if kubeconfig is not None:
        settings["KUBECONFIG"] = str(kubeconfig)
    settings["PYTHONPATH"] = str(RUNTIME)
    command = [sys.executable, "-m", "invoke", *words]
    return subprocess.run(
        command, cwd=project, env=settings | more, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def _server() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def own(_server: Sandbox) -> Sandbox:
    """A control plane that has nothing in it: what other tests install has the same names."""
    _server.reset()
    return _server


@pytest.fixture
def run(own: Sandbox, project: Path) -> Task:
    """Runs a task as the administrator."""
    return lambda *words: invoked(project, *words, kubeconfig=own.kubeconfig)


def sample(project: Path, name: str) -> Resource:
    loaded: Resource = yaml.safe_load((project / "samples/widget-v1.yaml").read_text("utf-8"))
    return {**loaded, "metadata": {"name": name, "namespace": "default"}}


def is_there(own: Sandbox, kind: str, name: str, api_version: str = "apps/v1") -> bool:
    found = own.get(api_version, kind, name, namespace=SLUG)
    return found is not None and "deletionTimestamp" not in found["metadata"]


def test_install_creates_what_the_manifest_says_and_the_second_time_applies_it(own: Sandbox, run: Task) -> None:
    first, second = run("install"), run("install", "--image", "registry.example.com/widgets-operator:9")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    into, *created = first.stdout.splitlines()
    assert into == f"installing into {own.url}, context 'sandbox' of {own.kubeconfig}"
    assert {line.split()[0] for line in created} == {"created"}
    assert {line.split()[0] for line in second.stdout.splitlines()[1:]} == {"applied"}
    assert created[0] == f"created Namespace {SLUG}"
    live = own.get("apps/v1", "Deployment", SLUG, namespace=SLUG)
    assert live is not None
    template = live["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "registry.example.com/widgets-operator:9"

    # Admission judges pods, and this namespace enforces the restricted profile.
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "trial"}, "spec": template["spec"]}
    answer = own.request("POST", f"/api/v1/namespaces/{SLUG}/pods?dryRun=All", pod)
    assert answer.status == 201, answer.body


def test_uninstall_lets_finalizers_run_and_leaves_nothing(
    own: Sandbox, run: Task, project: Path, start_operator: Start
) -> None:
    assert run("install").returncode == 0
    identity = own.service_account_kubeconfig(SLUG, SLUG)
    paths = os.pathsep.join([str(project / "src"), str(project / "vendor")])
    operator = start_operator(
        [sys.executable, "-m", "widgets_operator"], kubeconfig=identity, cwd=project, PYTHONPATH=paths
    ).wait_ready()
    for name in ("one", "two"):
        own.apply(sample(project, name))
    own.eventually(lambda: all(each["metadata"].get("finalizers") for each in own.items("example.com/v1", "Widget")))

    done = run("uninstall", "--yes")

    assert done.returncode == 0, done.stdout + done.stderr
    assert not operator.lines("reconcile failed")
    deleted = [line.removeprefix("deleted ").split()[0] for line in done.stdout.splitlines()[1:]]
    assert deleted[:3] == ["Widget", "Widget", "Deployment"]
    assert deleted[-2:] == ["CustomResourceDefinition", "Namespace"]
    own.eventually(lambda: own.request("GET", WIDGETS).status == 404)
    assert not is_there(own, "Deployment", SLUG)
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        assert own.get("rbac.authorization.k8s.io/v1", kind, SLUG) is None


def test_while_an_object_waits_for_its_clean_up_the_operator_stays(own: Sandbox, run: Task, project: Path) -> None:
    assert run("install").returncode == 0
    held = sample(project, "held")
    own.apply({**held, "metadata": {**held["metadata"], "finalizers": ["example.com/held"]}})

    done = run("uninstall", "--yes", "--wait", "1")

    assert done.returncode == 2
    assert "there still are custom resources (1), Widget default/held among them" in done.stderr
    assert done.stdout.splitlines()[1:] == ["deleted Widget default/held"]
    assert is_there(own, "Deployment", SLUG)


def test_uninstall_asks_first_and_deletes_nothing(own: Sandbox, run: Task, project: Path) -> None:
    assert run("install").returncode == 0
    own.apply(sample(project, "one"))

    done = run("uninstall")

    assert (done.returncode, done.stdout) == (2, "")
    assert "all custom resources (1) in default, " in done.stderr
    assert f"all else in namespace {SLUG}: " in done.stderr
    assert "--yes" in done.stderr
    (widget,) = own.items("example.com/v1", "Widget")
    assert "deletionTimestamp" not in widget["metadata"]
    assert is_there(own, "Deployment", SLUG)


def test_what_was_never_installed_is_uninstalled_without_a_deletion(own: Sandbox, run: Task) -> None:
    done = run("uninstall", "--yes")

    assert done.returncode == 0, done.stderr
    (first,) = done.stdout.splitlines()
    assert first.startswith("uninstalling from ")
    assert str(own.kubeconfig) in first


def test_a_namespace_of_others_stays_with_what_is_theirs(own: Sandbox, run: Task) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "shared"}}
    own.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}}, theirs])
    assert run("install", "--namespace", "shared").returncode == 0

    asked = run("uninstall", "--namespace", "shared")
    done = run("uninstall", "--namespace", "shared", "--yes")

    assert "all else" not in asked.stderr
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("left Namespace shared")
    found = own.get("v1", "Namespace", "shared")
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]
    assert own.get("v1", "ConfigMap", "theirs", namespace="shared") is not None
    assert own.get("apps/v1", "Deployment", SLUG, namespace="shared") is None


def test_the_cluster_is_the_one_that_run_local_would_take(own: Sandbox, project: Path) -> None:
    """BONNY_KUBECONFIG beats KUBECONFIG, and a flag beats BONNY_CONTEXT."""
    other, meant = project / "missing", {"BONNY_KUBECONFIG": str(own.kubeconfig)}

    for words in (("install",), ("uninstall", "--yes")):
        done = invoked(project, *words, kubeconfig=other, **meant)
        assert done.returncode == 0, done.stderr
        done = invoked(project, *words, kubeconfig=own.kubeconfig, BONNY_CONTEXT="nowhere")
        assert (done.returncode, "'nowhere'" in done.stderr) == (2, True)
        done = invoked(project, *words, "--context", "sandbox", BONNY_CONTEXT="nowhere", **meant)
        assert done.returncode == 0, done.stderr
        done = invoked(project, *words, **meant)
        first = {"install": "installing into", "uninstall": "uninstalling from"}[words[0]]
        assert done.stdout.startswith(f"{first} {own.url}, context 'sandbox' of {own.kubeconfig}\n")


def test_without_rights_or_a_server_one_sentence_says_so(own: Sandbox, project: Path) -> None:
    own.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest", "namespace": "default"}})
    guest = own.service_account_kubeconfig("default", "guest")

    refused = invoked(project, "install", kubeconfig=guest)
    lost = invoked(project, "uninstall", "--yes", kubeconfig=project / "missing")

    assert (refused.returncode, lost.returncode) == (2, 2)
    assert "cannot apply namespaces" in refused.stderr
    assert "does not exist" in lost.stderr
    assert "Traceback" not in refused.stderr + lost.stderr


MONITOR = {"apiVersion": "monitoring.example.org/v1", "kind": "ServiceMonitor"}


async def test_objects_of_kinds_that_others_define_come_and_go_with_the_manifest(own: Sandbox) -> None:
    """Such as those of Prometheus' operator: neither Kubernetes nor this operator serves them."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "ServiceMonitor", "plural": "servicemonitors"}
    (definition,) = own.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "servicemonitors.monitoring.example.org"},
            "spec": {"group": "monitoring.example.org", "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
    own.eventually(lambda: own.request("GET", "/apis/monitoring.example.org/v1/servicemonitors").status == 200)
    cluster = Kubeconfig(str(own.kubeconfig))
    documents = [{**MONITOR, "metadata": {"name": "mine", "namespace": "default"}}]

    await deploy.install(cluster, documents)
    assert own.get(MONITOR["apiVersion"], MONITOR["kind"], "mine") is not None
    await deploy.uninstall(cluster, documents, own=SLUG, wait=1, sure=True)
    assert own.get(MONITOR["apiVersion"], MONITOR["kind"], "mine") is None

    own.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition["metadata"]["name"])
    own.eventually(lambda: own.request("GET", "/apis/monitoring.example.org/v1/servicemonitors").status == 404)
    await deploy.uninstall(cluster, documents, own=SLUG, wait=1, sure=True)
    with pytest.raises(ApiError, match="cannot apply servicemonitors"):
        await deploy.install(cluster, documents)


# --- which custom resources there are ---------------------------------------------------------------------------------

OPEN = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
HELD: Resource = {
    "apiVersion": "gears.example.org/v1",
    "kind": "Gear",
    "metadata": {"name": "held", "namespace": "default", "finalizers": ["gears.example.org/held"]},
}
HELD_PATH = "/apis/gears.example.org/v1/namespaces/default/gears/held"
WITHOUT_FINALIZERS = {"metadata": {"finalizers": None}}
MERGE = "application/merge-patch+json"
ROLE: Resource = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "gears", "namespace": "default"},
    "rules": [],
}


def gears(**versions: tuple[bool, bool]) -> list[Resource]:
    """A manifest whose CRD has these versions, `(served, storage)` each, and one object that goes last."""
    listed = [
        {"name": name, "served": served, "storage": storage, "schema": OPEN}
        for name, (served, storage) in versions.items()
    ]
    names = {"kind": "Gear", "plural": "gears"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.gears.example.org"},
        "spec": {"group": "gears.example.org", "scope": "Namespaced", "names": names, "versions": listed},
    }
    return [definition, ROLE]


@pytest.mark.parametrize(
    ("installed", "local"),
    [
        pytest.param({"v1": (True, True)}, {"v1": (True, False), "v2": (True, True)}, id="a version not deployed yet"),
        pytest.param({"v1": (True, False), "v2": (False, True)}, None, id="a stored version that is not served"),
    ],
)
async def test_objects_are_counted_in_a_version_that_the_cluster_serves(
    own: Sandbox, installed: dict[str, tuple[bool, bool]], local: dict[str, tuple[bool, bool]] | None
) -> None:
    """Not in that of the code here: there would be none, and the CRD would take the objects with it, uncleaned."""
    own.apply([*gears(**installed), HELD])
    cluster, documents = Kubeconfig(str(own.kubeconfig)), gears(**(local or installed))

    with pytest.raises(UsageError, match=r"all custom resources \(1\)"):
        await deploy.uninstall(cluster, documents, own=SLUG, wait=0, sure=False)
    with pytest.raises(UsageError, match=r"there still are custom resources \(1\), Gear default/held among them"):
        await deploy.uninstall(cluster, documents, own=SLUG, wait=0, sure=True)
    assert own.get(ROLE["apiVersion"], "Role", "gears") is not None

    going = asyncio.create_task(deploy.uninstall(cluster, documents, own=SLUG, wait=30, sure=True))
    await asyncio.to_thread(own.request, "PATCH", HELD_PATH, WITHOUT_FINALIZERS, content_type=MERGE)
    await going
    assert own.get(ROLE["apiVersion"], "Role", "gears") is None


async def test_a_definition_that_is_being_deleted_is_awaited(own: Sandbox) -> None:
    """Regression: what was applied to it went with it, and the install said that all was well."""
    documents = gears(v1=(True, True))
    crd = documents[0]
    own.apply([*documents, HELD])
    own.delete(crd["apiVersion"], crd["kind"], crd["metadata"]["name"])

    def is_applied() -> bool:
        live = own.get(crd["apiVersion"], crd["kind"], crd["metadata"]["name"])
        managers = {each["manager"] for each in live["metadata"]["managedFields"]} if live else set()
        return "bonny-install" in managers

    installing = asyncio.create_task(deploy.install(Kubeconfig(str(own.kubeconfig)), documents))
    await until(is_applied)
    assert not installing.done()
    await asyncio.to_thread(own.request, "PATCH", HELD_PATH, WITHOUT_FINALIZERS, content_type=MERGE)
    await installing

    live = own.get(crd["apiVersion"], crd["kind"], crd["metadata"]["name"])
    assert live is not None
    assert "deletionTimestamp" not in live["metadata"]
    assert own.items("gears.example.org/v1", "Gear") == []


async def test_a_definition_that_does_not_go_is_one_sentence(own: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = gears(v1=(True, True))
    crd = documents[0]
    own.apply([*documents, HELD])
    own.delete(crd["apiVersion"], crd["kind"], crd["metadata"]["name"])
    monkeypatch.setattr(install, "GONE_SECONDS", 0.2)

    with pytest.raises(UsageError, match=r"gears\.gears\.example\.org is being deleted, and its objects are not gone"):
        await deploy.install(Kubeconfig(str(own.kubeconfig)), documents)


async def test_where_no_version_is_served_nothing_is_deleted(own: Sandbox) -> None:
    own.apply([*gears(v1=(True, True)), HELD])
    own.apply(gears(v1=(False, True)))

    with pytest.raises(UsageError, match=r"serves no version of gears\.gears\.example\.org"):
        await deploy.uninstall(Kubeconfig(str(own.kubeconfig)), gears(v1=(False, True)), own=SLUG, wait=0, sure=True)
    assert own.get(ROLE["apiVersion"], "Role", "gears") is not None


@pytest.mark.parametrize("path", ["/apis/apiextensions.k8s.io/v1/", "/apis/gears.example.org/v1/"])
async def test_a_bare_404_of_whoever_answered_is_not_taken_for_no_objects(own: Sandbox, path: str) -> None:
    own.apply([*gears(v1=(True, True)), HELD])
    with FaultProxy(own) as proxy:
        proxy.add(Fault(Respond(404, b"404 page not found\n"), on=lambda request: request.path.startswith(path)))
        with pytest.raises(NotServed):
            await deploy.uninstall(
                Kubeconfig(str(proxy.kubeconfig)), gears(v1=(True, True)), own=SLUG, wait=0, sure=True
            )
    assert own.get(ROLE["apiVersion"], "Role", "gears") is not None


async def test_a_bare_404_of_an_object_that_is_there_ends_the_deletions(own: Sandbox) -> None:
    """Else its CRD would go next, and the operator be left without it."""
    own.apply(gears(v1=(True, True)))
    with FaultProxy(own) as proxy:
        proxy.add(Fault(Respond(404, b"404 page not found\n"), on=lambda request: request.method == "DELETE"))
        with pytest.raises(NotServed):
            await deploy.uninstall(
                Kubeconfig(str(proxy.kubeconfig)), gears(v1=(True, True)), own=SLUG, wait=0, sure=True
            )
    assert own.get(ROLE["apiVersion"], "Role", "gears") is not None
    assert own.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gears.gears.example.org") is not None


# --- webhooks ---------------------------------------------------------------------------------------------------------


class GearSpec(Spec):
    """What the user wants."""


class GearStatus(Status):
    """What is."""


class Gear(Version):
    """Something that turns."""

    kind = "Gear"
    version = "v1"
    storage = True
    hub = True
    spec: GearSpec = GearSpec()
    status: GearStatus


class GearAdmission(Admission[Gear]):
    """Would forbid every write and every deletion."""

    async def validate(self, review: Review[Gear]) -> None:
        raise Denied("never")

    async def validate_delete(self, review: Review[Gear]) -> None:
        raise Denied("never")


NAMED: Resource = {"name": "gears-operator", "namespace": "gears-operator"}
GEARS = Operator(name=NAMED["name"], group="gears.example.org", controllers=[GearAdmission], crds=[Gear])
CONVERSION: Resource = {
    "strategy": "Webhook",
    "webhook": {"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]},
}


def patched(own: Sandbox, path: str, patch: Resource) -> None:
    answer = own.request("PATCH", path, patch, content_type=MERGE)
    assert answer.status == 200, answer.body


async def test_webhooks_are_registered_when_a_replica_is_ready_and_cannot_stop_an_uninstall(
    own: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Kubeconfig(str(own.kubeconfig))
    documents = bundle.documents(GEARS, image="registry.example.com/gears:1")
    deployment = f"/apis/apps/v1/namespaces/{NAMED['namespace']}/deployments/{NAMED['name']}"
    hook = "ValidatingWebhookConfiguration", f"{NAMED['name']}.gears.example.org"
    api = "admissionregistration.k8s.io/v1"
    configuration = f"/apis/{api}/validatingwebhookconfigurations/{hook[1]}"

    with pytest.raises(UsageError, match=r"after 0 s Deployment gears-operator/gears-operator has no ready replica: "):
        await deploy.install(cluster, documents, wait=0)
    assert own.get(api, *hook) is None

    generation = own.request("GET", deployment).body["metadata"]["generation"]
    status = {"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    # A replica of a former template is there as well: it does not know the webhooks of this one.
    patched(own, f"{deployment}/status", {"status": status | {"replicas": 2}})
    with pytest.raises(UsageError, match="has no ready replica"):
        await deploy.install(cluster, documents, wait=0)
    patched(own, f"{deployment}/status", {"status": status})
    with pytest.raises(UsageError, match=r"after 0 s ValidatingWebhookConfiguration .* has no caBundle"):
        await deploy.install(cluster, documents, wait=0)

    # What the operator does in a cluster; nobody answers here, so every write of a Gear is refused.
    authority = b64encode(own.ca_file.read_bytes()).decode()
    operations = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": authority}]
    answer = own.request("PATCH", configuration, operations, content_type="application/json-patch+json")
    assert answer.status == 200, answer.body
    await deploy.install(cluster, documents, wait=0)
    gear = {**HELD, "metadata": {"name": "one", "namespace": "default"}}
    gears = "/apis/gears.example.org/v1/namespaces/default/gears"
    own.eventually(lambda: own.request("POST", gears, gear).status == 500)
    own.delete(api, *hook)
    own.eventually(lambda: own.request("POST", gears, gear).status == 201)
    own.apply([each for each in documents if each["kind"] == hook[0]])
    own.eventually(lambda: own.request("DELETE", f"{gears}/one?dryRun=All").status == 500)

    # Objects of two stored versions cannot be read without the webhook that converts them.
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gears.gears.example.org"
    second = {"name": "v2", "served": True, "storage": False, "schema": OPEN}
    versions = own.request("GET", crd).body["spec"]["versions"]
    patched(own, crd, {"spec": {"versions": [*versions, second], "conversion": CONVERSION}})
    patched(own, f"{crd}/status", {"status": {"storedVersions": ["v1", "v2"]}})
    with pytest.raises(UsageError, match=r"Gear is stored in v1, v2, .* run `invoke migrate Gear` first"):
        await deploy.uninstall(cluster, documents, own=NAMED["name"], wait=20, sure=True)
    assert own.get(api, *hook) is not None

    patched(own, f"{crd}/status", {"status": {"storedVersions": ["v1"]}})
    await deploy.uninstall(cluster, documents, own=NAMED["name"], wait=20, sure=True)

    assert own.get(api, *hook) is None
    own.eventually(lambda: own.request("GET", crd).status == 404)
    deleted = capsys.readouterr().out.splitlines()
    guard = deleted.index("deleted ValidatingAdmissionPolicy gears-operator-webhook-guard.gears.example.org")
    assert deleted.index("deleted ClusterRoleBinding gears-operator") < guard, "it guards permissions until they go"


async def test_a_manifest_without_conversion_follows_one_with_it(own: Sandbox) -> None:
    """Regression: 422, because the operator owned the caBundle of the conversion that the apply removes."""
    cluster = Kubeconfig(str(own.kubeconfig))
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gears.gears.example.org"
    (plain,) = (each for each in gears(v1=(True, True)) if each["kind"] == "CustomResourceDefinition")
    await deploy.install(cluster, [{**plain, "spec": {**plain["spec"], "conversion": CONVERSION}}])
    authority = b64encode(own.ca_file.read_bytes()).decode()
    injected = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": authority}}}}}
    patched(own, f"{crd}?fieldManager=gears-operator", injected)

    await deploy.install(cluster, [plain])

    assert own.request("GET", crd).body["spec"]["conversion"] == {"strategy": "None"}


async def test_a_release_without_webhooks_takes_away_those_of_the_last_one(own: Sandbox) -> None:
    """Regression: nobody answered them any more, so no object could be written."""
    cluster = Kubeconfig(str(own.kubeconfig))
    api, hook = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
    documents = bundle.documents(GEARS, image="registry.example.com/gears:1")
    (ours,) = (each for each in documents if each["kind"] == hook)
    other = {**ours, "metadata": {"name": "other", "labels": {"app.kubernetes.io/name": NAMED["name"]}}}
    own.apply([ours, other])
    without = Operator(name=GEARS.name, group=GEARS.group, controllers=[], crds=[Gear])

    await deploy.install(cluster, bundle.documents(without, image="registry.example.com/gears:2"))

    assert own.get(api, hook, ours["metadata"]["name"]) is None
    assert own.get(api, hook, "other") is not None
