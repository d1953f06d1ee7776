"""Names: what the objects of webhooks, and of /metrics over TLS, are called; the manifest writes them, and the running
operator looks for them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

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


def service(operator: str, purpose: Purpose = "webhook") -> str:
    """The Service in the operator's namespace."""
    return operator if purpose == "metrics" else f"{operator}-webhook"


def secret(operator: str, purpose: Purpose = "webhook") -> str:
    """The Secret with the certificate, in the operator's namespace."""
    return f"{operator}-{purpose}-tls"


def configuration(operator: str, group: str) -> str:
    """The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration."""
    return f"{operator}.{group}"


def host_names(operator: str, namespace: str, purpose: Purpose = "webhook") -> tuple[str, ...]:
    """The names in the certificate; the API server, and a ServiceMonitor, ask for the first one."""
    host = f"{service(operator, purpose)}.{namespace}"
    return f"{host}.svc", host, f"{host}.svc.cluster.local"
