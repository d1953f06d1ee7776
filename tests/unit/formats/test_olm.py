"""A bundle for OLM: what it says of the operator, and what it cannot say."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from bonny import Deploy
from bonny.errors import UsageError
from bonny.resource import Resource
from bonny_dev.formats.olm import CERTIFICATE, NAMESPACE, bundle
from bonny_dev.manifest.bundle import documents
from bonny_dev.manifest.rbac import permissions
from tests.support.lamps import Lamp, LampAdmission
from tests.unit.formats.test_helm import REPOSITORY, operator
from tests.unit.manifest.test_webhooks import Nodes

IMAGE = f"{REPOSITORY}:1.0.0"
SAMPLE = {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "one"}, "spec": {"brightness": 1}}
OTHER = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two"}}


def made(**options: Any) -> tuple[dict[str, str], Resource, list[str]]:
    """The files, the ClusterServiceVersion and what is lost."""
    declared = operator(**options)
    folder, lost = bundle(declared, image=IMAGE, version="1.0.0rc1", samples=[SAMPLE, OTHER])
    csv = yaml.safe_load(folder.generated["manifests/lamps-operator.clusterserviceversion.yaml"])
    return dict(folder.generated), csv, lost


def test_the_version_names_operator_kinds_and_samples() -> None:
    files, csv, _ = made()

    assert csv["metadata"]["name"] == "lamps-operator.v1.0.0-rc.1"
    assert csv["spec"]["version"] == "1.0.0-rc.1"
    assert json.loads(csv["metadata"]["annotations"]["alm-examples"]) == [SAMPLE]
    owned = csv["spec"]["customresourcedefinitions"]["owned"]
    assert [(each["name"], each["version"]) for each in owned] == [
        ("lamps.example.com", "v1"),
        ("lamps.example.com", "v1alpha1"),
    ]
    assert "conversion" not in yaml.safe_load(files["manifests/lamps.example.com.crd.yaml"])["spec"]
    annotations = yaml.safe_load(files["metadata/annotations.yaml"])["annotations"]
    assert annotations["operators.operatorframework.io.bundle.package.v1"] == "lamps-operator"


@pytest.mark.parametrize(("watch", "mode"), [("all", "AllNamespaces"), ("namespace", "OwnNamespace")])
def test_it_is_installed_for_the_namespaces_that_it_watches(watch: str, mode: str) -> None:
    _, csv, _ = made(watch=watch, crds=[Lamp], controllers=[])

    assert [each["type"] for each in csv["spec"]["installModes"] if each["supported"]] == [mode]
    assert NAMESPACE not in json.dumps(csv)
    ((deployment,),) = [csv["spec"]["install"]["spec"]["deployments"]]
    env = {each["name"]: each for each in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    watched = env["BONNY_WATCH_NAMESPACE"]
    assert watched.get("value") == "__ALL__" or watched["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace"


def test_permissions_are_those_of_the_manifest_without_the_ones_for_certificates() -> None:
    declared = operator(controllers=[Nodes, LampAdmission], deploy=Deploy(certificates="cert-manager"))
    objects = documents(declared, image=IMAGE, namespace="lamps", exclude=["roles"])
    wanted = {
        each._replace(namespace="own" if namespace == "lamps" else "all")
        for role in objects
        if role["kind"] in ("Role", "ClusterRole")
        for namespace in [role["metadata"].get("namespace", "")]
        for each in permissions({namespace: role["rules"]})
    }

    _, csv, _ = made(controllers=[Nodes, LampAdmission])

    install = csv["spec"]["install"]["spec"]
    (own,), (everywhere,) = install["permissions"], install["clusterPermissions"]
    assert {own["serviceAccountName"], everywhere["serviceAccountName"]} == {"lamps-operator"}
    assert {*permissions({"own": own["rules"], "all": everywhere["rules"]})} == wanted


def test_webhooks_are_called_with_the_certificate_of_olm() -> None:
    _, csv, lost = made()

    validating, mutating, conversion = csv["spec"]["webhookdefinitions"]
    assert validating["type"] == "ValidatingAdmissionWebhook"
    assert mutating["type"] == "MutatingAdmissionWebhook"
    assert (validating["webhookPath"], validating["targetPort"]) == ("/validate/lamp-admission", 10250)
    assert validating["rules"][0]["resources"] == ["lamps"]
    assert conversion["conversionCRDs"] == ["lamps.example.com"]
    (deployment,) = csv["spec"]["install"]["spec"]["deployments"]
    env = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "BONNY_WEBHOOK_CERTIFICATE", "value": CERTIFICATE} in env
    assert any("has no word for the conditions not-by-the-operator" in each for each in lost)
    assert any(each.startswith("lamp-admission.example.com fails closed") for each in lost)


def test_what_olm_makes_itself_is_not_in_the_bundle() -> None:
    files, _, _ = made()

    kinds = {each["kind"] for text in files.values() if "kind:" in text for each in yaml.safe_load_all(text)}
    assert kinds == {"ClusterServiceVersion", "CustomResourceDefinition", "ClusterRole", "NetworkPolicy", "Service"}
    assert not any(
        "namespace" in (yaml.safe_load(text).get("metadata") or {}) for text in files.values() if "kind:" in text
    )


def test_secure_metrics_are_refused() -> None:
    with pytest.raises(UsageError, match="OLM makes no certificate for metrics: use another format"):
        made(deploy=Deploy(secure_metrics=True))


def test_a_kind_of_others_has_no_owned_entry() -> None:
    _, csv, _ = made(crds=[], controllers=[Nodes])

    assert csv["spec"]["customresourcedefinitions"] == {"owned": []}
