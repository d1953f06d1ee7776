"""OLM: a bundle (registry+v1) for the Operator Lifecycle Manager: a ClusterServiceVersion, CRDs and further objects.

OLM itself makes the ServiceAccount, roles, webhook configurations and their certificate, from what the
ClusterServiceVersion says. It has no word for conditions and namespaces of webhooks, nor for admission policies:
`left_out` says what a bundle lacks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Final

import yaml

from bonny.errors import UsageError
from bonny.operator import Operator
from bonny.resource import Resource, identify

from ..manifest.bundle import documents, to_yaml
from ..manifest.deployment import PORT
from ..sandbox.versions import OLDEST
from .folder import Folder
from .grouping import CRD, POLICIES
from .version import semantic

# No cluster has it: what holds it depends on a namespace that a bundle does not know.
NAMESPACE: Final = "bonny-olm-namespace"
# Where OLM mounts the certificate of webhooks, under the names that the operator reads.
CERTIFICATE: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  OLM's own choice
CONFIGURATIONS: Final = {
    "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
    "MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
}
# Kinds that OLM makes itself, or has no place for.
OWN: Final = ("Namespace", "ServiceAccount", "Deployment", "RoleBinding", "ClusterRoleBinding", "Issuer", "Certificate")
COPIED: Final = (
    "rules",
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "reinvocationPolicy",
)


def bundle(
    operator: Operator,
    *,
    image: str,
    version: str,
    samples: Iterable[Resource] = (),
    include: Collection[str] = (),
    exclude: Collection[str] = (),
) -> tuple[Folder, list[str]]:
    """The files of a bundle, and a sentence for each thing of the manifest that it lacks.

    `samples` are objects of the operator's kinds, which consoles show as examples.
    Raises: `UsageError` for secure metrics, whose certificate OLM does not make; as `documents` does.
    """
    if operator.deploy.secure_metrics:
        raise UsageError("OLM makes no certificate for metrics: use another format, or Deploy(secure_metrics=False)")
    objects = documents(_served_by_olm(operator), image=image, namespace=NAMESPACE, include=include, exclude=exclude)
    number = semantic(version)
    lost: list[str] = []
    further: dict[str, str] = {}
    for each in objects:
        if each["kind"] == CRD:
            made = deepcopy(each)
            made["spec"].pop("conversion", None)  # OLM adds it
            made["metadata"].pop("annotations", None)
            further[f"manifests/{each['metadata']['name']}.crd.yaml"] = to_yaml([made])
        elif each["kind"] in CONFIGURATIONS:
            lost += _lost_of(each)
        elif each["apiVersion"].startswith(POLICIES):
            lost.append(f"OLM installs no {each['kind']}: apply {each['metadata']['name']} beside the bundle")
        elif not _is_own(each, operator):
            made = deepcopy(each)
            made["metadata"].pop("namespace", None)
            name = f"{each['metadata']['name']}.{each['kind'].lower()}.yaml"
            further[f"manifests/{name}"] = to_yaml([_placed(made)])
    version_file = f"manifests/{operator.name}.clusterserviceversion.yaml"
    csv = _csv(operator, objects, image=image, number=number, samples=samples)
    generated = {
        version_file: to_yaml([_placed(csv)]),
        **further,
        "metadata/annotations.yaml": _dumped({"annotations": _annotations(operator)}),
        "bundle.Dockerfile": _dockerfile(operator),
    }
    return Folder(generated=generated), lost


def _served_by_olm(operator: Operator) -> Operator:
    """The operator with the certificate of its webhooks made elsewhere: it neither fills a Secret nor a caBundle."""
    served = copy(operator)
    served.deploy = replace(operator.deploy, certificates="cert-manager")
    return served


def _is_own(each: Resource, operator: Operator) -> bool:
    """Whether OLM makes such an object from the ClusterServiceVersion."""
    if each["kind"] in OWN or (each["kind"] == "Service" and each["metadata"]["name"] == f"{operator.name}-webhook"):
        return True
    return each["kind"] in ("Role", "ClusterRole") and not _is_for_people(each)


def _is_for_people(each: Resource) -> bool:
    """Whether it is one of the roles that are added to `view`, `edit` and `admin`."""
    return any(name.startswith("rbac.authorization.k8s.io/aggregate-to-") for name in each["metadata"]["labels"])


def _placed(each: Resource) -> Resource:
    """`each`. Raises: `UsageError` where it names the namespace, which a bundle does not know."""
    if NAMESPACE in json.dumps(each):
        raise UsageError(f"{identify(each)} names the operator's namespace, which a bundle for OLM cannot know")
    return each


def _csv(
    operator: Operator, objects: list[Resource], *, image: str, number: str, samples: Iterable[Resource]
) -> Resource:
    examples = [each for each in samples if any(each["apiVersion"].startswith(f"{g}/") for g in _groups(objects))]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{operator.name}.v{number}",
            "annotations": {
                "alm-examples": json.dumps(examples, indent=2),
                "capabilities": "Basic Install",
                "categories": "Application Runtime",
                "containerImage": image,
                "operatorframework.io/suggested-namespace": operator.name,
            },
        },
        "spec": {
            "displayName": operator.name,
            "description": f"The operator {operator.name}, for the kinds of {operator.group}.",
            "version": number,
            "minKubeVersion": str(OLDEST["kube-apiserver"]),
            "maturity": "alpha",
            "provider": {"name": operator.group},
            "maintainers": [{"name": operator.name, "email": f"operator@{operator.group}"}],
            "links": [{"name": operator.name, "url": f"https://{operator.group}"}],
            "keywords": [operator.name],
            "installModes": _install_modes(operator),
            "customresourcedefinitions": {"owned": [*_owned(objects)]},
            "install": {"strategy": "deployment", "spec": _install(operator, objects)},
            **_webhooks(operator, objects),
        },
    }


def _groups(objects: Iterable[Resource]) -> set[str]:
    return {each["spec"]["group"] for each in objects if each["kind"] == CRD}


def _owned(objects: Iterable[Resource]) -> Iterator[Resource]:
    for each in (each for each in objects if each["kind"] == CRD):
        names = each["spec"]["names"]
        for version in each["spec"]["versions"]:
            described = version["schema"]["openAPIV3Schema"].get("description", f"A {names['kind']}.")
            yield {
                "name": each["metadata"]["name"],
                "version": version["name"],
                "kind": names["kind"],
                "displayName": names["kind"],
                "description": described,
            }


def _install_modes(operator: Operator) -> list[Resource]:
    supported = "OwnNamespace" if operator.namespaced else "AllNamespaces"
    modes = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
    return [{"type": mode, "supported": mode == supported} for mode in modes]


def _install(operator: Operator, objects: Iterable[Resource]) -> Resource:
    """Deployments, and permissions: those in the operator's namespace, and those in all namespaces."""
    deployments, own, everywhere = [], [], []
    for each in objects:
        if each["kind"] == "Deployment":
            deployments.append({"name": each["metadata"]["name"], **_deployed(each)})
        elif each["kind"] == "Role" and each["metadata"]["namespace"] == NAMESPACE:
            own += each["rules"]
        elif each["kind"] in ("Role", "ClusterRole") and not _is_for_people(each):
            # A bundle cannot name other namespaces: what is for one of them holds in all.
            everywhere += each["rules"]
    granted = {"permissions": own, "clusterPermissions": everywhere}
    permissions = {
        name: [{"serviceAccountName": operator.name, "rules": rules}] for name, rules in granted.items() if rules
    }
    return {**permissions, "deployments": deployments}


def _deployed(deployment: Resource) -> Resource:
    made = deepcopy(deployment)
    containers = made["spec"]["template"]["spec"]["containers"]
    for container in containers:
        for variable in container.get("env", ()):
            if variable.get("value") == NAMESPACE:  # it watches its own
                del variable["value"]
                variable["valueFrom"] = {"fieldRef": {"fieldPath": "metadata.namespace"}}
        if {"name": "webhook", "containerPort": PORT} in container.get("ports", ()):
            container["env"].append({"name": "BONNY_WEBHOOK_CERTIFICATE", "value": CERTIFICATE})
    return {"label": made["metadata"]["labels"], "spec": made["spec"]}


def _webhooks(operator: Operator, objects: Iterable[Resource]) -> Resource:
    found: list[Resource] = []
    for each in objects:
        for webhook in each.get("webhooks", ()) if each["kind"] in CONFIGURATIONS else ():
            kept: dict[str, Any] = {key: webhook[key] for key in COPIED if key in webhook}
            named = {"type": CONFIGURATIONS[each["kind"]], "generateName": webhook["name"]}
            found.append({**named, **_called(operator, webhook["clientConfig"]["service"]["path"]), **kept})
    converted = [each for each in objects if each["kind"] == CRD and "conversion" in each["spec"]]
    if converted:
        path = converted[0]["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"]
        found.append(
            {
                "type": "ConversionWebhook",
                "generateName": f"convert.{operator.group}",
                **_called(operator, path),
                "conversionCRDs": [each["metadata"]["name"] for each in converted],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        )
    return {"webhookdefinitions": found} if found else {}


def _called(operator: Operator, path: str) -> Resource:
    return {"deploymentName": operator.name, "containerPort": 443, "targetPort": PORT, "webhookPath": path}


def _lost_of(configuration: Resource) -> Iterator[str]:
    for webhook in configuration["webhooks"]:
        conditions = ", ".join(each["name"] for each in webhook.get("matchConditions", ()))
        yield f"OLM calls {webhook['name']} in all cases: it has no word for the conditions {conditions}"
        if webhook.get("failurePolicy") == "Fail":
            yield (
                f"{webhook['name']} fails closed, and OLM has no word for the namespaces that it leaves out: while no "
                "replica answers, the finalizers of deleted objects cannot be removed"
            )


def _annotations(operator: Operator) -> Mapping[str, str]:
    return {
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
        "operators.operatorframework.io.bundle.package.v1": operator.name,
        "operators.operatorframework.io.bundle.channels.v1": "stable",
        "operators.operatorframework.io.bundle.channel.default.v1": "stable",
    }


def _dockerfile(operator: Operator) -> str:
    labels = "".join(f"LABEL {name}={value}\n" for name, value in _annotations(operator).items())
    return f"FROM scratch\n{labels}COPY manifests /manifests/\nCOPY metadata /metadata/\n"


def _dumped(value: Resource) -> str:
    return str(yaml.safe_dump(value, sort_keys=False))
