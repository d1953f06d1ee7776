"""Names: the names of the objects of webhooks, and the RBAC rules for their certificate.

The manifest brings these objects. The operator can neither create nor delete one, and each rule names its object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..kinds import Kind
from ..resource import Resource
from ..tls.secret import TlsSecret
from .admission import Action, Admission

if TYPE_CHECKING:
    from ..operator import Operator

CONVERT: Final = "/convert"
"""The path of conversion reviews."""

CONFIGURATIONS: Final[dict[Action, Kind]] = {
    "validate": Kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    "mutate": Kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
}
DEFINITION: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def service(operator: Operator) -> str:
    """The Service that the API server calls, in the operator's namespace."""
    return f"{operator.name}-webhook"


def secret(operator: Operator, namespace: str) -> TlsSecret:
    """The Secret with the certificate."""
    return TlsSecret(operator.name, "webhook", service(operator), namespace, operator.deploy.certificates == "own")


def configuration(operator: Operator, namespace: str) -> str:
    """The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration."""
    return operator.outside(f"{operator.name}.{operator.group}", namespace)


def trusting(operator: Operator, *, namespace: str) -> dict[Kind, list[str]]:
    """The names of the objects that hold the authority of the certificate in a `caBundle`."""
    actions = {action for each in operator.of(Admission) for action, _ in each.handlers()}
    found = {kind: [configuration(operator, namespace)] for action, kind in CONFIGURATIONS.items() if action in actions}
    converted = [hub.as_kind(operator.group).resource for hub in operator.converted]
    return found | ({DEFINITION: converted} if converted else {})


def certificate_rules(operator: Operator, *, namespace: str) -> dict[str, list[Resource]]:
    """The rules by namespace, empty for the ClusterRole: read and fill the Secret; write a `caBundle`.

    With cert-manager only the Secret is read: others fill it, and write the `caBundle`s.
    """
    filled = secret(operator, namespace)
    trust: list[Resource] = [
        {"apiGroups": [kind.group], "resources": [kind.plural], "resourceNames": named, "verbs": ["get", "patch"]}
        for kind, named in (trusting(operator, namespace=namespace) if filled.own else {}).items()
    ]
    return {namespace: [filled.rule()], "": trust}
