"""Webhooks: what tells the API server which reviews to send to the operator.

You need it to see or change what `invoke manifest` writes for an `Admission`: `webhooks(operator, namespace)`.
Elsewhere: what is refused (`webhook_checks`), and what serves the reviews (`serving`).

No `caBundle` is written: the operator or cert-manager adds it, and an apply of the manifest leaves it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from bonny.kinds import Kind
from bonny.naming import check_plural
from bonny.operator import Operator
from bonny.resource import Resource
from bonny.webhooks import names
from bonny.webhooks.admission import Admission

from ..crd.definition import crds
from .field_checks import schemas_of
from .policies import API_VERSION, NOT_DELETED, SINCE, named, not_by, rule
from .webhook_checks import check_admission

CONVERTED_BY: Final = "bonny.dev/converted-by"
"""The annotation of a CRD whose objects the operator converts: `namespace/name` of the Service."""

INJECT: Final = "cert-manager.io/inject-ca-from"
# The port of the Service, which is the default of the API.
SERVICE_PORT: Final = 443
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def webhooks(operator: Operator, namespace: str) -> list[Resource]:
    """The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration, each only if it has a webhook.

    Raises: `OptionError` naming the class, for what the API server would refuse, for a field of an own kind that does
    not exist, and for what could keep a cluster from working while no replica answers; `UsageError` for a name.
    """
    schemas = schemas_of(crds(operator.crds, operator.group))
    validating, mutating = [], []
    for admission in operator.admissions:
        check_admission(admission, operator, schemas)
        validated = admission.validated_operations()
        if validated:
            validating.append(_webhook(admission, operator, namespace, "validate", validated))
        if admission.mutates():
            written = (each for each in admission.operations if each != "DELETE")
            again = "IfNeeded" if admission.again else "Never"
            mutating.append(
                {**_webhook(admission, operator, namespace, "mutate", written), "reinvocationPolicy": again}
            )
    annotations = {SINCE: "1.30", **_injected(operator, namespace)}
    metadata = {"name": names.configuration(operator.name, operator.group), "annotations": annotations}
    return [
        {"apiVersion": API_VERSION, "kind": f"{kind}WebhookConfiguration", "metadata": metadata, "webhooks": entries}
        for kind, entries in (("Validating", validating), ("Mutating", mutating))
        if entries
    ]


def with_conversion(operator: Operator, namespace: str, definitions: Iterable[Resource]) -> list[Resource]:
    """The CRDs; those of `operator.converted` send their objects to the operator, whichever part of a manifest they
    are in: without a server their stored version works, and without the webhook the API server would drop fields."""
    converted = {hub.as_kind(operator.group).resource for hub in operator.converted}
    return [
        _converting(operator, namespace, each) if each["metadata"]["name"] in converted else each
        for each in definitions
    ]


def service_name(operator: Operator) -> str:
    """The Service of the webhooks. Raises: `UsageError` when the operator's name does not allow it."""
    return check_plural(names.service(operator.name), "name of a Service", example="widgets-operator-webhook")


def _webhook(
    admission: type[Admission[Any]],
    operator: Operator,
    namespace: str,
    action: Literal["mutate", "validate"],
    operations: Iterable[str],
) -> Resource:
    operations = tuple(operations)
    conditions = dict(admission.match_conditions)
    conditions["not-by-the-operator"] = not_by(operator, namespace)
    conditions["not-being-deleted"] = NOT_DELETED
    made: Resource = {
        "name": f"{admission.path(action).rpartition('/')[2]}.{operator.group}",
        "clientConfig": _client_config(operator, namespace, admission.path(action)),
        "rules": [_rule(kind, operations, admission) for kind in admission.kinds(operator.group)],
        "matchPolicy": "Equivalent",
        "namespaceSelector": _namespaces(admission, operator, namespace),
        "matchConditions": named(conditions),
        "failurePolicy": "Fail" if admission.fails_closed() else "Ignore",
        "sideEffects": admission.side_effects,
        "timeoutSeconds": admission.timeout,
        "admissionReviewVersions": ["v1"],
    }
    if admission.object_selector:
        made["objectSelector"] = {"matchLabels": dict(admission.object_selector)}
    return made


def _rule(kind: Kind, operations: Iterable[str], admission: type[Admission[Any]]) -> Resource:
    return {**rule(kind, operations, admission.subresources), "scope": "Namespaced" if kind.namespaced else "Cluster"}


def _namespaces(admission: type[Admission[Any]], operator: Operator, namespace: str) -> Resource:
    """An operator that watches its own namespace reviews writes there and nowhere else; any other, not there."""
    excluded = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": [namespace, "kube-system"]}
    own = {"key": NAMESPACE_NAME, "operator": "In", "values": [namespace]}
    selector: Resource = {"matchExpressions": [own if operator.watch == "namespace" else excluded]}
    if admission.namespace_selector:
        selector["matchLabels"] = dict(admission.namespace_selector)
    return selector


def _converting(operator: Operator, namespace: str, definition: Resource) -> Resource:
    metadata = definition["metadata"]
    marks = {CONVERTED_BY: f"{namespace}/{service_name(operator)}", **_injected(operator, namespace)}
    webhook = {
        "clientConfig": _client_config(operator, namespace, names.CONVERT),
        "conversionReviewVersions": ["v1"],
    }
    return {
        **definition,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **marks}},
        "spec": {**definition["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}},
    }


def _client_config(operator: Operator, namespace: str, path: str) -> Resource:
    return {"service": {"name": service_name(operator), "namespace": namespace, "path": path, "port": SERVICE_PORT}}


def _injected(operator: Operator, namespace: str) -> dict[str, str]:
    own = operator.deploy.certificates == "own"
    return {} if own else {INJECT: f"{namespace}/{names.service(operator.name)}"}
