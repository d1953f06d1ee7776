"""Permissions: the RBAC rules for the certificate of webhooks, and the objects that the rules name.

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


def trusting(operator: Operator, *, namespace: str) -> dict[Kind, list[str]]:
    """The names of the objects that hold the authority of the certificate in a `caBundle`."""
    configuration = names.configuration(operator, namespace)
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
    secret: Resource = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [names.secret(operator.name)],
        "verbs": ["get", "list", "watch", *(["patch"] if own else [])],
    }
    trust: list[Resource] = [
        {"apiGroups": [kind.group], "resources": [kind.plural], "resourceNames": named, "verbs": ["get", "patch"]}
        for kind, named in (trusting(operator, namespace=namespace) if own else {}).items()
    ]
    return {namespace: [secret], "": trust}
