"""Charts, bases and bundles with the programs that people deploy with: helm, kustomize and operator-verify.

The quick tests of the same files, without these programs, are in tests/unit/formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bonny import Axn, Controller, Deploy, Field, Operator, Spec, Status, Version
from bonny.resource import Resource
from bonny_dev.formats.folder import write
from bonny_dev.formats.helm import charts
from bonny_dev.formats.kustomize import base
from bonny_dev.formats.olm import bundle
from bonny_dev.manifest.bundle import documents
from bonny_dev.manifest.optional_objects import PARTS
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.processes import SandboxError
from tests.support.deployers import accept, run
from tests.support.lamps import Lamp, LampAdmission, OldLamp

pytestmark = pytest.mark.slow

NAME = "lamps-operator"
IMAGE = "registry.example.com/lamps-operator:1.0.0"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "pots.example.com")
# So that every part is in the chart's output.
ALL = [word for part in ("networkPolicy", "service", "pdb", "serviceMonitor", "alerts", "dashboards", "roles")
       for word in ("--set", f"{part}.enable=true")]  # fmt: skip


class PotSpec(Spec):
    """What the user wants."""

    size: int = Field(1, ge=1)


class WiderPotSpec(PotSpec):
    """What the user wants in the next release."""

    colour: str = "red"


class PotStatus(Status):
    """What the operator reports."""


def pots(spec: type[Spec]) -> Operator:
    """One release of an operator; the kind has this spec."""
    fields = {
        "kind": "Pot",
        "version": "v1",
        "storage": True,
        "hub": True,
        "__annotations__": {"spec": spec, "status": PotStatus},
    }
    pot = type("Pot", (Version,), {**fields, "__doc__": "A pot.", "__module__": __name__})

    async def reconcile(self: object, axn: Axn[Any]) -> None: ...

    controller = type("Pots", (Controller,), {"resource": pot, "reconcile": reconcile})
    return Operator(name="pots-operator", group="example.com", controllers=[controller])


def lamps(**options: Any) -> Operator:
    admissions = options.pop("controllers", [LampAdmission])
    return Operator(name=NAME, group="example.com", crds=[Lamp, OldLamp], controllers=admissions, **options)


def chart_of(operator: Operator, folder: Path, version: str = "1.0.0") -> Path:
    image = f"registry.example.com/{operator.name}:{version}"
    write(folder, charts(operator, image=image, version=version))
    return folder / operator.name


def named(objects: list[Resource]) -> dict[tuple[str, str, str], Resource]:
    found = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects}
    assert len(found) == len(objects)
    return found


@pytest.fixture
def own() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def is_served(own: Sandbox) -> bool:
    """Whether pots can be listed: for a moment after their definition the API server refuses that."""
    try:
        return own.items("example.com/v1", "Pot") == []
    except SandboxError:
        return False


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"watch": "namespace"},
        {"deploy": Deploy(replicas=3, labels={"team": "light"}, env={"TEXT": "a {{ b }} $c"})},
        {"deploy": Deploy(certificates="cert-manager", secure_metrics=True)},
    ],
    ids=["default", "namespace", "replicas", "cert-manager"],
)
def test_what_helm_renders_is_the_manifest_object_by_object(options: dict[str, Any], tmp_path: Path) -> None:
    operator = lamps(**options)
    chart = chart_of(operator, tmp_path / "helm")

    rendered = accept("helm", "template", "any-release", chart, "--namespace", "shop", *ALL)

    found = named([*yaml.safe_load_all(rendered)])
    for each in found.values():
        if each["kind"] == "CustomResourceDefinition":
            assert each["metadata"]["annotations"].pop("helm.sh/resource-policy") == "keep"
    expected = documents(operator, image=IMAGE, namespace="shop", include=[*PARTS])
    assert found == named([each for each in expected if each["kind"] != "Namespace"])


def test_the_chart_of_crds_alone_holds_those_of_the_manifest(tmp_path: Path) -> None:
    chart = chart_of(lamps(), tmp_path / "helm")

    alone = accept("helm", "template", "r", f"{chart}-crds", "--namespace", "x", "--set", "operatorNamespace=shop")
    without = accept("helm", "template", "r", chart, "--namespace", "shop", "--set", "crd.enable=false")

    (crd,) = yaml.safe_load_all(alone)
    assert crd["metadata"]["annotations"].pop("helm.sh/resource-policy") == "keep"
    assert crd in documents(lamps(), image=IMAGE, namespace="shop")
    assert "CustomResourceDefinition" not in {each["kind"] for each in yaml.safe_load_all(without)}


def test_values_change_what_they_name(tmp_path: Path) -> None:
    chart = chart_of(lamps(), tmp_path / "helm")
    values = tmp_path / "values.yaml"
    given = {
        "replicas": 2,
        "image": {"repository": "mirror.example.com/lamps", "tag": "2.0.0", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "mirror"}],
        "env": [{"name": "LOG", "value": "{{ x }}"}],
        "resources": {"limits": {"cpu": 2}},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "podAnnotations": {"a": "b: c"},
        "priorityClassName": "high",
        "serviceAccount": {"annotations": {"role": "r"}},
        "extra": {"anything": 1},
    }
    values.write_text(yaml.safe_dump(given), encoding="utf-8")
    (chart / "templates" / "extra" / "mine.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\ndata: {x: '{{ .Values.extra.anything }}'}\n", "utf-8"
    )

    found = named([*yaml.safe_load_all(accept("helm", "template", "r", chart, "-n", "shop", "-f", values))])

    deployment = found["Deployment", "shop", NAME]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["replicas"] == 2
    assert container["image"] == "mirror.example.com/lamps:2.0.0"
    assert container["imagePullPolicy"] == "Always"
    assert container["env"][-1] == {"name": "LOG", "value": "{{ x }}"}
    assert container["resources"] == {
        "limits": {"cpu": 2, "memory": "200Mi", "ephemeral-storage": "1Gi"},
        "requests": {"cpu": "200m", "memory": "200Mi", "ephemeral-storage": "64Mi"},
    }
    for name in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName"):
        assert pod[name] == given[name]
    assert deployment["template"]["metadata"]["annotations"] == {"a": "b: c"}
    assert found["ServiceAccount", "shop", NAME]["metadata"]["annotations"] == {"role": "r"}
    assert found["ConfigMap", "", "mine"]["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("replica=2", "replica"),
        ("replicas=two", "replicas"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("crd.keep=perhaps", "keep"),
        ("image.digest=sha256:1", "digest"),
    ],
)
def test_a_value_of_another_name_or_type_is_refused(word: str, complaint: str, tmp_path: Path) -> None:
    chart = chart_of(lamps(), tmp_path / "helm")

    done = run("helm", "template", "r", chart, "--set", word)

    assert done.returncode != 0
    assert complaint in done.stderr


def test_lint_finds_nothing(tmp_path: Path) -> None:
    chart = chart_of(lamps(), tmp_path / "helm")

    for each in (chart, f"{chart}-crds"):
        said = accept("helm", "lint", "--strict", each)
        assert "[WARNING]" not in said
        assert "[ERROR]" not in said


def test_objects_survive_upgrade_rollback_and_uninstall(own: Sandbox, tmp_path: Path) -> None:
    """The release before, with an object; then one with another CRD; back; and away."""

    def helm(*words: str | Path) -> str:
        return accept("helm", *words, "--namespace", "pots", kubeconfig=own.kubeconfig)

    def fields() -> set[str]:
        crd = own.get(*CRD)
        assert crd is not None
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        return set(properties)

    def image() -> str:
        live = own.get("apps/v1", "Deployment", "pots-operator", namespace="pots")
        assert live is not None
        return str(live["spec"]["template"]["spec"]["containers"][0]["image"])

    first = chart_of(pots(PotSpec), tmp_path / "first")
    second = chart_of(pots(WiderPotSpec), tmp_path / "second", "1.1.0")

    helm("install", "pots", first, "--create-namespace")
    own.eventually(lambda: is_served(own))
    (pot,) = own.apply(
        {
            "apiVersion": "example.com/v1",
            "kind": "Pot",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"size": 3},
        }
    )
    uid = pot["metadata"]["uid"]
    assert (fields(), image()) == ({"size"}, "registry.example.com/pots-operator:1.0.0")

    helm("upgrade", "pots", second)
    assert (fields(), image()) == ({"size", "colour"}, "registry.example.com/pots-operator:1.1.0")

    helm("rollback", "pots", "1")
    assert (fields(), image()) == ({"size"}, "registry.example.com/pots-operator:1.0.0")

    helm("uninstall", "pots")
    assert own.get("apps/v1", "Deployment", "pots-operator", namespace="pots") is None
    assert fields() == {"size"}
    kept = own.get("example.com/v1", "Pot", "p")
    assert kept is not None
    assert (kept["metadata"]["uid"], kept["spec"]) == (uid, {"size": 3})

    helm("install", "pots", second)
    assert fields() == {"size", "colour"}, "the CRD that stayed belongs to the release again"


def test_objects_of_a_manifest_that_was_applied_are_adopted(own: Sandbox, tmp_path: Path) -> None:
    operator = pots(PotSpec)
    own.apply(documents(operator, image="registry.example.com/pots-operator:0.9.0", namespace="pots"))
    chart = chart_of(operator, tmp_path / "helm")
    words = ("upgrade", "--install", "pots", chart, "--namespace", "pots")

    refused = run("helm", *words, kubeconfig=own.kubeconfig)
    assert refused.returncode != 0
    assert "cannot be imported into the current release" in refused.stderr

    accept("helm", *words, "--take-ownership", "--force-conflicts", kubeconfig=own.kubeconfig)

    for key in (CRD, ("apps/v1", "Deployment", "pots-operator"), ("v1", "ServiceAccount", "pots-operator")):
        live = own.get(*key, namespace="pots")
        assert live is not None
        assert live["metadata"]["annotations"]["meta.helm.sh/release-name"] == "pots"
        assert live["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    accept("helm", "upgrade", "pots", chart, "--namespace", "pots", kubeconfig=own.kubeconfig)


def test_a_release_with_crds_apart_leaves_them_to_their_chart(own: Sandbox, tmp_path: Path) -> None:
    chart = chart_of(pots(PotSpec), tmp_path / "helm")
    into = ("--namespace", "pots", "--create-namespace")

    accept("helm", "install", "pots-crds", f"{chart}-crds", *into, kubeconfig=own.kubeconfig)
    accept("helm", "install", "pots", chart, *into, "--set", "crd.enable=false", kubeconfig=own.kubeconfig)

    crd = own.get(*CRD)
    assert crd is not None
    assert crd["metadata"]["annotations"]["meta.helm.sh/release-name"] == "pots-crds"


def test_helm_waits_for_the_deployment_where_pods_are_simulated(tmp_path: Path) -> None:
    """No container runs there: Ready says that the pod was admitted and got a node, and nothing of the probes."""
    chart = chart_of(pots(PotSpec), tmp_path / "helm")
    with Sandbox(workloads=True) as sandbox:
        words = ("upgrade", "--install", "pots", chart, "--namespace", "pots", "--create-namespace", "--wait")
        accept("helm", *words, "--timeout", "60s", kubeconfig=sandbox.kubeconfig)
        live = sandbox.get("apps/v1", "Deployment", "pots-operator", namespace="pots")
        assert live is not None
        assert live["status"]["readyReplicas"] == 1

        broken = ("--set", "podAnnotations.bonny\\.dev/simulate=not-ready", "--set", "env[0].name=A", "--timeout", "5s")
        done = run("helm", *words, *broken, kubeconfig=sandbox.kubeconfig)
        assert done.returncode != 0


def test_the_base_is_the_manifest_and_an_overlay_changes_it(tmp_path: Path) -> None:
    objects = documents(lamps(), image=IMAGE, namespace="shop", include=[*PARTS])
    write(tmp_path / "k", base(objects, replicas=1, image=IMAGE))

    assert named([*yaml.safe_load_all(accept("kustomize", "build", tmp_path / "k" / "base"))]) == named(objects)
    crds = [*yaml.safe_load_all(accept("kustomize", "build", tmp_path / "k" / "base" / "crds"))]
    assert crds == [each for each in objects if each["kind"] == "CustomResourceDefinition"]

    overlay = tmp_path / "k" / "overlays" / "production"
    path = overlay / "kustomization.yaml"
    path.write_text(
        path.read_text("utf-8").replace("newTag: 1.0.0", "newTag: 2.0.0").replace("count: 1", "count: 4"), "utf-8"
    )
    write(tmp_path / "k", base(objects, replicas=1, image=IMAGE))
    found = named([*yaml.safe_load_all(accept("kustomize", "build", overlay))])
    deployment = found.pop(("Deployment", "shop", NAME))
    assert deployment["spec"]["replicas"] == 4
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE.replace("1.0.0", "2.0.0")
    expected = named(objects)
    del expected["Deployment", "shop", NAME]
    assert found == expected


def test_the_order_of_the_base_is_that_of_the_manifest(own: Sandbox, tmp_path: Path) -> None:
    objects = documents(pots(PotSpec), image=IMAGE, namespace="shop")
    write(tmp_path / "k", base(objects, replicas=1, image=IMAGE))

    built = accept("kustomize", "build", tmp_path / "k" / "overlays" / "production")

    own.apply([*yaml.safe_load_all(built)])  # one by one: each finds what it refers to


@pytest.mark.parametrize(
    "options",
    [{}, {"controllers": []}, {"deploy": Deploy(replicas=2)}],
    ids=["webhooks", "conversion", "replicas"],
)
def test_operator_verify_accepts_the_bundle(options: dict[str, Any], tmp_path: Path) -> None:
    sample = {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "a"}, "spec": {"brightness": 1}}
    old = {"apiVersion": "example.com/v1alpha1", "kind": "Lamp", "metadata": {"name": "b"}, "spec": {"light": 1}}
    files, _ = bundle(lamps(**options), image=IMAGE, version="1.0.0", samples=[sample, old])
    write(tmp_path / "olm", files)

    done = run("operator-verify", "manifests", tmp_path / "olm")

    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Error" not in said
    assert "Warning" not in said
