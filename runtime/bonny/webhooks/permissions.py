"""Permissions: the RBAC rules for the certificate of webhooks, and the objects that the rules name.

Nothing in them can be created or deleted, and each rule names its object: the manifest brings all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..resource import Resource
from . import names

if TYPE_CHECKING:
    from ..operator import Operator

ADMISSION: Final = "admissionregistration.k8s.io"
EXTENSIONS: Final = "apiextensions.k8s.io"


def trusting(operator: Operator) -> list[tuple[str, str, tuple[str, ...]]]:
    """Group, plural and names of the objects that hold the authority of the certificate in a `caBundle`."""
    configuration = (names.configuration(operator.name, operator.group),)
    found: list[tuple[str, str, tuple[str, ...]]] = []
    if any(admission.validated_operations() for admission in operator.admissions):
        found.append((ADMISSION, "validatingwebhookconfigurations", configuration))
    if any(admission.mutates() for admission in operator.admissions):
        found.append((ADMISSION, "mutatingwebhookconfigurations", configuration))
    if operator.converted:
        definitions = tuple(hub.as_kind(operator.group).resource for hub in operator.converted)
        found.append((EXTENSIONS, "customresourcedefinitions", definitions))
    return found


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
        {"apiGroups": [group], "resources": [plural], "resourceNames": list(found), "verbs": ["get", "patch"]}
        for group, plural, found in (trusting(operator) if own else ())
    ]
    return {namespace: [secret], "": trust}
