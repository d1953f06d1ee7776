"""Webhooks: the objects by which the API server sends reviews to the operator.

You need it to see or change the output of `invoke manifest` for an `Admission`: `webhooks(operator, namespace)`.
Elsewhere: refused options (`webhook_checks`), and the objects that must be there before (`serving`).

No `caBundle` is written: the operator or cert-manager adds it, and an apply of the manifest leaves it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bonny.operator import Operator
from bonny.resource import Resource
from bonny.webhooks import names
from bonny.webhooks.admission import Action, Admission

from ..crd.definition import crds
from .field_checks import schemas_of
from .policies import API_VERSION, NOT_DELETED, SINCE, named, not_by, rule, within
from .template import read_object
from .webhook_checks import check_admission

CONVERTED_BY: Final = "bonny.dev/converted-by"
"""The annotation of a CRD whose objects the operator converts: `namespace/name` of the Service."""

INJECT: Final = "cert-manager.io/inject-ca-from"


def webhooks(operator: Operator, namespace: str) -> list[Resource]:
    """The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration, each only if it has a webhook.

    Raises: `OptionError` naming the class, for what the API server would refuse, for a field of an own kind that does
    not exist, and for what could keep a cluster from working while no replica answers.
    """
    schemas = schemas_of(crds(operator.crds, operator.group))
    entries: dict[Action, list[Resource]] = {action: [] for action in names.CONFIGURATIONS}
    for admission in operator.of(Admission):
        check_admission(admission, operator, schemas)
        for action, made in entries.items():
            if operations := [each for of, each in admission.handlers() if of == action]:
                made.append(_webhook(admission, operator, namespace, action, operations))
    metadata = {
        "name": names.configuration(operator, namespace),
        "annotations": {SINCE: "1.30", **_injected(operator, namespace)},
    }
    return [
        {"apiVersion": API_VERSION, "kind": kind.kind, "metadata": metadata, "webhooks": entries[action]}
        for action, kind in names.CONFIGURATIONS.items()
        if entries[action]
    ]


def with_conversion(operator: Operator, namespace: str, definitions: Iterable[Resource]) -> Iterable[Resource]:
    """The CRDs; for the kinds of `operator.converted` with a conversion by the operator.

    Also where no operator serves yet: the stored version works then. Without the conversion the API server would drop
    the fields that differ.
    """
    converted = {hub.as_kind(operator.group).resource for hub in operator.converted}
    for each in definitions:
        if each["metadata"]["name"] in converted:
            service = names.service(operator)
            marks = {CONVERTED_BY: f"{namespace}/{service}", **_injected(operator, namespace)}
            each["metadata"]["annotations"] = {**each["metadata"].get("annotations", {}), **marks}
            each["spec"]["conversion"] = read_object(
                "conversion", operator, namespace, service=service, path=names.CONVERT
            )
        yield each


def _webhook(
    admission: type[Admission[Any]],
    operator: Operator,
    namespace: str,
    action: Action,
    operations: Iterable[str],
) -> Resource:
    path = admission.path(action)
    made = read_object(
        "webhook",
        operator,
        namespace,
        webhook=f"{path.rpartition('/')[2]}.{operator.group}",
        service=names.service(operator),
        path=path,
        failure_policy="Fail" if admission.fails_closed() else "Ignore",
        side_effects=admission.side_effects,
        timeout=admission.timeout,
    )
    made["rules"] = [
        {**rule(kind, operations, admission.subresources), "scope": "Namespaced" if kind.namespaced else "Cluster"}
        for kind in admission.kinds(operator.group)
    ]
    own = {"not-by-the-operator": not_by(operator, namespace), "not-being-deleted": NOT_DELETED}
    made["matchConditions"] = named({**admission.match_conditions, **own})
    if operator.namespaced:
        # It has its objects there, and none elsewhere.
        made["namespaceSelector"] = {"matchExpressions": [within(namespace)]}
    if admission.namespace_selector:
        made["namespaceSelector"]["matchLabels"] = dict(admission.namespace_selector)
    if admission.object_selector:
        made["objectSelector"] = {"matchLabels": dict(admission.object_selector)}
    if action == "mutate":
        made["reinvocationPolicy"] = "IfNeeded" if admission.again else "Never"
    return made


def _injected(operator: Operator, namespace: str) -> dict[str, str]:
    return {INJECT: f"{namespace}/{names.service(operator)}"} if operator.deploy.certificates != "own" else {}
