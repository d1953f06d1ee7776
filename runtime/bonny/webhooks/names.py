"""Names: the names of the objects of webhooks and of /metrics over TLS, and the RBAC rules for their certificates.

The manifest brings these objects. The operator can neither create nor delete one, and each rule names its object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ..kinds import Kind
from ..resource import Resource

if TYPE_CHECKING:
    from ..operator import Operator

PORT: Final = 10250
"""The container's port: clusters whose control plane is behind a firewall let it reach 443 and 10250 only."""

METRICS_PORT: Final = 8443
"""The container's port of /metrics over TLS: that of kubebuilder's projects."""

Purpose: TypeAlias = Literal["webhook", "metrics"]
"""The use of a certificate. Each has a Secret of its own: a reader of that of /metrics cannot answer reviews."""

CONVERT: Final = "/convert"
"""The path of conversion reviews."""

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
BUNDLE: Final = "ca.crt"
"""Keys of the Secret, as cert-manager names them: the chain that is served, its key, and the CAs that clients trust."""

VALIDATING: Final = Kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
MUTATING: Final = Kind("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
DEFINITION: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def service(operator: str, purpose: Purpose = "webhook") -> str:
    """The Service in the operator's namespace."""
    return operator if purpose == "metrics" else f"{operator}-webhook"


def secret(operator: str, purpose: Purpose = "webhook") -> str:
    """The Secret with the certificate, in the operator's namespace."""
    return f"{operator}-{purpose}-tls"


def configuration(operator: Operator, namespace: str) -> str:
    """The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration."""
    return outside(f"{operator.name}.{operator.group}", operator, namespace)


def outside(name: str, operator: Operator, namespace: str) -> str:
    """The name of an object that is not in the `namespace` of the operator.

    An operator with `watch="namespace"` may be installed once in each namespace, so its name has the namespace in it.
    """
    return name if operator.watch == "all" else f"{name}.{namespace}"


def host_names(operator: str, namespace: str, purpose: Purpose = "webhook") -> tuple[str, ...]:
    """The names in the certificate; the API server, and a ServiceMonitor, ask for the first one."""
    host = f"{service(operator, purpose)}.{namespace}"
    return f"{host}.svc", host, f"{host}.svc.cluster.local"


def trusting(operator: Operator, *, namespace: str) -> dict[Kind, list[str]]:
    """The names of the objects that hold the authority of the certificate in a `caBundle`."""
    registered = configuration(operator, namespace)
    found = {
        VALIDATING: [registered for each in operator.admissions if each.validated_operations()][:1],
        MUTATING: [registered for each in operator.admissions if each.mutates()][:1],
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
        for kind, named in (trusting(operator, namespace=namespace) if own else {}).items()
    ]
    return {namespace: [_secret_rule(operator, "webhook")], "": trust}


def metrics_rules(operator: Operator, *, namespace: str) -> dict[str, list[Resource]]:
    """The rules for /metrics over TLS: its Secret, and reviews of who scrapes it."""
    reviews: list[Resource] = [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]
    return {namespace: [_secret_rule(operator, "metrics")], "": reviews}


def _secret_rule(operator: Operator, purpose: Purpose) -> Resource:
    return {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [secret(operator.name, purpose)],
        "verbs": ["get", "list", "watch", *(["patch"] if operator.deploy.certificates == "own" else [])],
    }
