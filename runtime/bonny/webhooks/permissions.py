"""Permissions: the RBAC rules for the certificates of webhooks and of /metrics, and the objects that the rules name.

Nothing in them can be created or deleted, and each rule names its object: the manifest brings all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..kinds import Kind
from ..resource import Resource
from . import names

if TYPE_CHECKING:
    from ..operator import Operator

VALIDATING: Final = Kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
MUTATING: Final = Kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
DEFINITION: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def trusting(operator: Operator) -> dict[Kind, list[str]]:
    """The names of the objects that hold the authority of the certificate in a `caBundle`."""
    configuration = names.configuration(operator.name, operator.group)
    found = {
        VALIDATING: [configuration for each in operator.admissions if each.validated_operations()][:1],
        MUTATING: [configuration for each in operator.admissions if each.mutates()][:1],
        DEFINITION: [hub.as_kind(operator.group).resource for hub in operator.converted],
    }
    return {kind: named for kind, named in found.items() if named}


def certificate_rules(operator: Operator, *, namespace: str) -> dict[str, list[Resource]]:
    """The rules by namespace, empty for the ClusterRole: read and fill the Secret; write a `caBundle`.

    With cert-manager only the Secret is read: others fill it, and write the `caBundle`s.
    """
    own = operator.deploy.certificates == "own"
    trust: list[Resource] = [
        {"apiGroups": [kind.group], "resources": [kind.plural], "resourceNames": named, "verbs": ["get", "patch"]}
        for kind, named in (trusting(operator) if own else {}).items()
    ]
    return {namespace: [_secret_rule(operator, "webhook")], "": trust}


def metrics_rules(operator: Operator, *, namespace: str) -> dict[str, list[Resource]]:
    """The rules for /metrics over TLS: its Secret, and reviews of who scrapes it."""
    reviews: list[Resource] = [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]
    return {namespace: [_secret_rule(operator, "metrics")], "": reviews}


def _secret_rule(operator: Operator, purpose: names.Purpose) -> Resource:
    return {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [names.secret(operator.name, purpose)],
        "verbs": ["get", "list", "watch", *(["patch"] if operator.deploy.certificates == "own" else [])],
    }
