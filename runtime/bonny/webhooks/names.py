"""Names: what the objects of webhooks are called; the manifest writes them, and the running operator looks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..operator import Operator

PORT: Final = 10250
"""The container's port: clusters whose control plane is behind a firewall let it reach 443 and 10250 only."""

CONVERT: Final = "/convert"
"""The path of conversion reviews."""

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
BUNDLE: Final = "ca.crt"
"""Keys of the Secret, as cert-manager names them: the chain that is served, its key, and the CAs that clients trust."""


def service(operator: str) -> str:
    """The Service in the operator's namespace."""
    return f"{operator}-webhook"


def secret(operator: str) -> str:
    """The Secret with the certificate, in the operator's namespace."""
    return f"{operator}-webhook-tls"


def configuration(operator: Operator, namespace: str) -> str:
    """The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration."""
    return outside(f"{operator.name}.{operator.group}", operator, namespace)


def outside(name: str, operator: Operator, namespace: str) -> str:
    """The name of an object that is not in the `namespace` of the operator.

    An operator with `watch="namespace"` may be installed once in each namespace, so its name has the namespace in it.
    """
    return name if operator.watch == "all" else f"{name}.{namespace}"


def host_names(operator: str, namespace: str) -> tuple[str, ...]:
    """The names in the certificate; the API server asks for the first one."""
    host = f"{service(operator)}.{namespace}"
    return f"{host}.svc", host, f"{host}.svc.cluster.local"
